/*
 * memprefix/openai-agents: memories in the prompts of agents of the OpenAI Agents SDK (`@openai/agents`). Two ways: a filter of a run's model
 * input, which knows the run's context, or models that compose what they are asked, which nothing is stored of.
 */

import type { ChatMessage } from "../core/index.js";
import {
  type AgentsItem,
  instructionsIn,
  itemsOf,
  messagesOf,
  placedInItems,
  withoutAddedMessages,
} from "./agents-items.js";
import { type AdapterOptions, type ComposedCall, composeCall, type ReportedUsage, tellError } from "./composing.js";

export type { AgentsItem } from "./agents-items.js";
export type { AdapterOptions, Composing, NameOf, PromptOptions } from "./composing.js";

/** One call of a model, as a filter sees it. */
export interface FilterCall<Context = unknown> {
  /** The run's own: what was given to `run` as `context`. */
  readonly context: Context | undefined;
  readonly agent: AgentsAgent;
}

/** A `CallModelInputFilter` of the SDK, which leaves open what a run's context is. */
export type AgentsFilter = <Item extends AgentsItem>(
  call: FilterCall & { readonly modelData: { input: Item[]; instructions?: string } },
) => Promise<{ input: Item[]; instructions?: string }>;

/**
 * A `callModelInputFilter` that puts memories into a run's prompts. A session stores what a filter gives for a run's input, so it stores the
 * user's words with the memories in front of them; `compose` knows them when they come back. After a tool's result, memories stand inside
 * the result, which is stored without. Usage is reported by the agent's own events. Never throws.
 *
 * @example
 * ```ts
 * const callModelInputFilter = memprefixFilter<{ userId: string; chatId: string }>({
 *   memprefix,
 *   userId: ({ context }) => context?.userId,
 *   conversationId: ({ context }) => context?.chatId,
 * });
 * await run(agent, question, { context: { userId, chatId }, session, callModelInputFilter });
 * ```
 */
export function memprefixFilter<Context = unknown>(options: AdapterOptions<FilterCall<Context>>): AgentsFilter {
  // What a filter adds of its own, the session would store as if the user had said it.
  const exact = { ...options, compose: { ...options.compose, history: "exact" } as const };
  const usage = new RunUsage();
  return async ({ modelData, agent, context }) => {
    const { input, instructions } = modelData;
    const messages = messagesOf(input, instructions);
    const call = { agent, context: context as Context | undefined };
    const composed = await composeCall(placedInItems<FilterCall<Context>>(exact, messages), call, messages, "chat");
    if (composed === null) return modelData;
    try {
      const filled = itemsOf(withoutAddedMessages(composed.messages, messages), input);
      if (filled.length !== input.length) throw new Error("memories have no place in this input");
      usage.await(agent, context, composed.report);
      const head = instructionsIn(composed.messages);
      return { ...modelData, input: fill(input, filled), ...(head === undefined ? {} : { instructions: head }) };
    } catch (error) {
      tellError(options, error);
      return modelData;
    }
  };
}

/** The SDK gives a filter copies, and knows by the copy which item of the run it is: they are changed in place. */
function fill<Item extends AgentsItem>(input: readonly Item[], filled: readonly AgentsItem[]): Item[] {
  return input.map((item, at) => Object.assign(item, filled[at]));
}

/** The fields of the SDK's `ModelRequest` that are read, and of them those that are changed. */
export interface AgentsModelCall {
  readonly systemInstructions?: string;
  readonly input: string | readonly AgentsItem[];
  /** Set where the provider keeps what was said before: `input` is what is new. */
  readonly previousResponseId?: string;
  readonly conversationId?: string;
  readonly modelSettings: { readonly providerData?: Readonly<Record<string, unknown>> };
}

/** The SDK's `Model`. */
export interface AgentsModel {
  getResponse(request: AgentsModelCall): Promise<{ readonly usage: AgentsUsage }>;
  getStreamedResponse(request: AgentsModelCall): AsyncIterable<object>;
}

/** The SDK's `ModelProvider`. */
export interface AgentsModelProvider {
  getModel(name?: string): Promise<AgentsModel> | AgentsModel;
}

/**
 * The models of a provider, with memories in what they are asked: nothing of them gets into a run's state or session. Identities are fixed,
 * or read from the request: make one for each user and conversation, or use `memprefixFilter`, which knows the run's context.
 *
 * @example
 * ```ts
 * const modelProvider = memprefixModels(new OpenAIProvider(), { memprefix, userId, conversationId });
 * await new Runner({ modelProvider }).run(agent, question, { session });
 * ```
 */
export function memprefixModels<Provider extends AgentsModelProvider>(
  provider: Provider,
  options: AdapterOptions<AgentsModelCall>,
): Provider {
  const getModel: AgentsModelProvider["getModel"] = async (name) =>
    memprefixModel(await provider.getModel(name), options);
  return withMethods(provider, { getModel });
}

/** A model with memories in what it is asked, for an agent whose `model` is an object. See {@link memprefixModels}. */
export function memprefixModel<Model extends AgentsModel>(
  model: Model,
  options: AdapterOptions<AgentsModelCall>,
): Model {
  const getResponse: AgentsModel["getResponse"] = async (request) => {
    const { asked, composed } = await composeRequest(options, request);
    const response = await model.getResponse(asked);
    void composed?.report(reportedUsage(response.usage));
    return response;
  };
  async function* getStreamedResponse(request: AgentsModelCall): AsyncIterable<object> {
    const { asked, composed } = await composeRequest(options, request);
    const started = performance.now();
    let ttft: { readonly ttftMs?: number } = {};
    for await (const event of model.getStreamedResponse(asked)) {
      if (ttft.ttftMs === undefined && isToken(event)) ttft = { ttftMs: performance.now() - started };
      const usage = usageOf(event);
      if (usage !== null) void composed?.report({ ...reportedUsage(usage), ...ttft });
      yield event;
    }
  }
  return withMethods(model, { getResponse, getStreamedResponse });
}

interface ComposedRequest {
  readonly asked: AgentsModelCall;
  /** Null: the request is unmodified. */
  readonly composed: ComposedCall<ChatMessage> | null;
}

async function composeRequest(
  options: AdapterOptions<AgentsModelCall>,
  request: AgentsModelCall,
): Promise<ComposedRequest> {
  const { input } = request;
  const given = typeof input === "string" ? [{ role: "user", content: input }] : input;
  const messages = messagesOf(given, request.systemInstructions);
  const isNewAlone = request.previousResponseId !== undefined || request.conversationId !== undefined;
  const composed = await composeCall<AgentsModelCall, ChatMessage>(
    isNewAlone ? placedInItems(behindKept(options, request), messages) : options,
    request,
    messages,
    "chat",
  );
  if (composed === null) return { asked: request, composed };
  try {
    const items = itemsOf(isNewAlone ? withoutAddedMessages(composed.messages, messages) : composed.messages, given);
    // What the provider keeps was sent with its memories.
    const input = isNewAlone ? items.slice(-given.length) : items;
    return { asked: { ...request, input, ...changedFields(composed, request) }, composed };
  } catch (error) {
    tellError(options, error);
    return { asked: request, composed: null };
  }
}

/** The instructions, and the settings with the engine's fields, as far as they are others. */
function changedFields(
  composed: ComposedCall<ChatMessage>,
  { modelSettings }: AgentsModelCall,
): Partial<AgentsModelCall> {
  const instructions = instructionsIn(composed.messages);
  const { fields } = composed.engine;
  const providerData = { ...fields, ...modelSettings.providerData };
  return {
    ...(instructions === undefined ? {} : { systemInstructions: instructions }),
    ...(Object.keys(fields).length === 0 ? {} : { modelSettings: { ...modelSettings, providerData } }),
  };
}

/** Options for a request that holds what is new alone: what was said before is memprefix's to know. */
function behindKept(
  options: AdapterOptions<AgentsModelCall>,
  request: AgentsModelCall,
): AdapterOptions<AgentsModelCall> {
  const { conversationId: name, compose } = options;
  const conversationId = (typeof name === "function" ? name(request) : name) ?? request.conversationId;
  if (conversationId === undefined) return options;
  return { ...options, conversationId, compose: { ...compose, history: "stored" } };
}

/** Whether an event has some of the answer: a text's, or, as the Responses API names them, a call's or a thought's. */
function isToken(event: object): boolean {
  const { type, event: raw }: { readonly type?: unknown; readonly event?: { readonly type?: unknown } | null } = event;
  return type === "output_text_delta" || (type === "model" && String(raw?.type).endsWith(".delta"));
}

/** The usage that ends a stream; null for any other event. */
function usageOf(event: object): AgentsUsage | null {
  const { type, response }: { readonly type?: unknown; readonly response?: { readonly usage?: AgentsUsage } } = event;
  return type === "response_done" ? (response?.usage ?? null) : null;
}

/** The same object with other methods; what it keeps in private fields stays its own. */
function withMethods<T extends object>(target: T, methods: object): T {
  return new Proxy(target, {
    get: (_target, name) => {
      if (Object.hasOwn(methods, name)) return Reflect.get(methods, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" && name !== "constructor" ? value.bind(target) : value;
    },
  });
}

/** Usage as the SDK has it, of one request or of several: `Usage`, or what a stream's last event says. */
export interface AgentsUsage {
  readonly inputTokens?: number | undefined;
  readonly inputTokensDetails?: readonly TokenDetails[] | TokenDetails | undefined;
  readonly requestUsageEntries?: readonly AgentsUsage[] | undefined;
}

type TokenDetails = Readonly<Record<string, number>>;

/** Usage of one request, in tokens; what the engine did not say is unknown. */
function reportedUsage({ inputTokens, inputTokensDetails: details }: AgentsUsage): ReportedUsage {
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
class RunUsage {
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
