import type { AgentId, RequestId, UserId } from "../../core/index.js";
import type {
  KeptNote,
  KeptUsage,
  UsageFilter,
  UsageLog,
  UsagePage,
  UsageView,
  WindowMisses,
  WindowSums,
} from "../../store/api/usage-log.js";
import type { Observers } from "../base/memprefix-observer.js";
import type { MemprefixParts } from "../base/memprefix-parts.js";
import { UsageRecorder } from "./usage-recorder.js";

export { MISS_CAUSES, type MissCause, newTokens, timeAt, uncachedTokens } from "../../core/index.js";
export type {
  KeptNote,
  KeptUsage,
  TimedSums,
  UsagePage,
  WindowMisses,
  WindowSums,
} from "../../store/api/usage-log.js";

/** What a view shows: all of the tenant's, or a part. */
export type ViewOptions = Omit<UsageView, "tenant" | "now">;
/** Which prompts a list has. */
export type FilterOptions = Omit<UsageFilter, "tenant">;

/** One tenant's usage: the only way from a route to it. Everything recorded before a call is in its answer. */
export class TenantUsage {
  constructor(
    private readonly tenant: string,
    /** What records all tenants' usage. */
    private readonly on: Pick<RecordedUsage, "log" | "recorder">,
    private readonly now: () => number,
  ) {}

  async summary(view: ViewOptions): Promise<WindowSums> {
    return (await this.#flushed()).summary({ ...view, tenant: this.tenant, now: this.now() });
  }

  async misses(view: ViewOptions): Promise<WindowMisses> {
    return (await this.#flushed()).misses({ ...view, tenant: this.tenant, now: this.now() });
  }

  async prompts(filter: FilterOptions, before: number | null, limit: number): Promise<UsagePage> {
    return (await this.#flushed()).prompts({ ...filter, tenant: this.tenant }, before, limit);
  }

  /** Null: it is not kept, or no longer. */
  async prompt(userId: UserId, agentId: AgentId | null, requestId: RequestId): Promise<KeptUsage | null> {
    return (await this.#flushed()).prompt({ tenant: this.tenant, userId, agentId, requestId });
  }

  note(note: Pick<KeptNote, "kind" | "label" | "model"> & { readonly at: number | null }): Promise<KeptNote> {
    return this.on.recorder.note({ ...note, at: note.at ?? this.now(), tenant: this.tenant });
  }

  async #flushed(): Promise<UsageLog> {
    await this.on.recorder.flush();
    return this.on.log;
  }
}

/** What records the usage of all tenants. */
export interface RecordedUsage {
  readonly log: UsageLog;
  readonly recorder: UsageRecorder;
  /** Whether prompts cost money. */
  readonly hasPrices: boolean;
  /** Notes that the service started, `version` memprefix's own, and which of its defaults changed since it last did. */
  noteStart(version: string): Promise<void>;
  /** Writes what waits, and ends. The log stays open. */
  stop(): Promise<void>;
}

/** The mark of the defaults that prompts were composed by. */
const DEFAULTS_MARK = "defaults";

/** Begins to record. Null without a log. `onFault` is called with faults of the log: what could not be written is lost. */
export function recordUsage(
  { usage: log, defaults, now }: MemprefixParts,
  observers: Observers,
  onFault: (error: unknown) => void,
): RecordedUsage | null {
  if (log === undefined) return null;
  const usage = log;
  const recorder = new UsageRecorder({ log, now, costs: defaults.engine, onFault });
  const remove = observers.add(recorder);
  return {
    log,
    recorder,
    hasPrices: defaults.engine.cost.kind === "money",
    noteStart,
    async stop() {
      remove();
      await recorder.flush(true);
    },
  };

  async function noteStart(version: string): Promise<void> {
    const shared = { tenant: null, at: now(), model: null };
    await recorder.note({ ...shared, kind: "service_start", label: version });
    const { policy, retention, engineFamily } = defaults;
    const set = Object.entries({ policy, retention, engine: engineFamily });
    const named = set.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]));
    const before = await usage.replaceMark(DEFAULTS_MARK, JSON.stringify(named));
    if (before === null) return;
    const known = new Set(JSON.parse(before) as string[]);
    const changed = named.filter((text) => !known.has(text));
    if (changed.length > 0) await recorder.note({ ...shared, kind: "policy_change", label: changed.join(", ") });
  }
}
