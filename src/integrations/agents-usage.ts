import type { ReportedUsage } from "./composing.js";

/** Usage as the SDK has it, of one request or of several: `Usage`, or what a stream's last event says. */
export interface AgentsUsage {
  readonly inputTokens?: number | undefined;
  readonly inputTokensDetails?: readonly TokenDetails[] | TokenDetails | undefined;
  readonly requestUsageEntries?: readonly AgentsUsage[] | undefined;
}

type TokenDetails = Readonly<Record<string, number>>;

/** Usage of one request, in tokens; what the engine did not say is unknown. */
export function reportedUsage({ inputTokens, inputTokensDetails: details }: AgentsUsage): ReportedUsage {
  const [only] = Array.isArray(details) ? (details as readonly TokenDetails[]) : [details as TokenDetails | undefined];
  const cachedTokens = only?.["cached_tokens"];
  return {
    ...(inputTokens ? { promptTokens: inputTokens } : {}),
    ...(cachedTokens === undefined ? {} : { cachedTokens }),
  };
}

/** The SDK's `RunContext`, as far as it says what a run has used. */
export interface AgentsRun {
  readonly context: unknown;
  readonly usage: AgentsUsage;
}

/** Events of an agent after a response of its model. */
type BehindResponse = "agent_end" | "agent_handoff" | "agent_tool_start";

/** The SDK's `Agent`. */
export interface AgentsAgent {
  readonly name: string;
  on(event: BehindResponse, listener: (run: AgentsRun, ...about: unknown[]) => void): unknown;
}

type Report = (usage: ReportedUsage) => Promise<void>;

/**
 * Reports what responses used where only their prompts are seen: agents say it after each response, when they end, hand over or start a
 * tool. A run is known by its context, an object that the SDK makes where the caller gives none.
 */
export class RunUsage {
  readonly #listened = new WeakSet<AgentsAgent>();
  readonly #unreported = new WeakMap<object, Map<AgentsAgent, Report[]>>();
  /** Requests that a run's usage has reported. */
  readonly #told = new WeakMap<AgentsRun, number>();

  /** The next response of an agent's model in a run is to be reported. */
  await(agent: AgentsAgent, context: unknown, report: Report): void {
    if (typeof context !== "object" || context === null) return;
    this.#listenTo(agent);
    const ofRun = this.#unreported.get(context) ?? new Map<AgentsAgent, Report[]>();
    this.#unreported.set(context, ofRun);
    ofRun.set(agent, [...(ofRun.get(agent) ?? []), report]);
  }

  #listenTo(agent: AgentsAgent): void {
    if (this.#listened.has(agent)) return;
    this.#listened.add(agent);
    const settle = (run: AgentsRun) => this.#settle(agent, run);
    agent.on("agent_tool_start", settle);
    agent.on("agent_handoff", settle);
    agent.on("agent_end", settle);
  }

  #settle(agent: AgentsAgent, run: AgentsRun): void {
    const entries = run.usage.requestUsageEntries ?? [];
    const isTold = entries.length === (this.#told.get(run) ?? 0);
    this.#told.set(run, entries.length);
    if (typeof run.context !== "object" || run.context === null) return;
    const ofRun = this.#unreported.get(run.context);
    const [report, ...others] = ofRun?.get(agent) ?? [];
    ofRun?.delete(agent);
    const newest = entries.at(-1);
    // Of several responses, or of several runs of one context, it is not said which used how much.
    if (report === undefined || others.length > 0 || isTold || newest === undefined) return;
    void report(reportedUsage(newest));
  }
}
