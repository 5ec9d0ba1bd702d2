/*
 * memprefix/openai-agents: memories for agents of the OpenAI Agents SDK, by a filter of a run's model input, or by models that compose their
 * requests.
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

export interface FilterCall<Context = unknown> {
  /** What `run` got as `context`. */
  readonly context: Context | undefined;
  readonly agent: AgentsAgent;
}

/** A `CallModelInputFilter` of the SDK, which leaves open what a run's context is. */
export type AgentsFilter = <Item extends AgentsItem>(
  call: FilterCall & { readonly modelData: { input: Item[]; instructions?: string } },
) => Promise<{ input: Item[]; instructions?: string }>;

/**
 * A `callModelInputFilter` that adds memories to a run's prompts. A session stores the filtered input, so it stores the user's words after the
 * memories; `compose` recognises them later. After a tool's result, memories go into the result, which is stored without them. The agent's
 * events report usage. Never throws.
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
  // The session would store a filter's own messages as if the user had said them.
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

/** The SDK identifies a run's items by the copies that it gives a filter, so they are changed in place. */
function fill<Item extends AgentsItem>(input: readonly Item[], filled: readonly AgentsItem[]): Item[] {
  return input.map((item, at) => Object.assign(item, filled[at]));
}

export interface AgentsModelCall {
  readonly systemInstructions?: string;
  readonly input: string | readonly AgentsItem[];
  /** Set if the provider keeps the earlier messages: `input` is only the new part. */
  readonly previousResponseId?: string;
  readonly conversationId?: string;
  readonly modelSettings: { readonly providerData?: Readonly<Record<string, unknown>> };
}

export interface AgentsModel {
  getResponse(request: AgentsModelCall): Promise<{ readonly usage: AgentsUsage }>;
  getStreamedResponse(request: AgentsModelCall): AsyncIterable<object>;
}

export interface AgentsModelProvider {
  getModel(name?: string): Promise<AgentsModel> | AgentsModel;
}

/**
 * A provider's models with memories in their requests; no run's state or session stores them. Make one for each user and conversation, or use
 * `memprefixFilter`, which knows the run's context.
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

/** Like {@link memprefixModels}, for an agent whose `model` is an object. */
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
    // The provider has the earlier messages with their memories.
    const input = isNewAlone ? items.slice(-given.length) : items;
    return { asked: { ...request, input, ...changedFields(composed, request) }, composed };
  } catch (error) {
    tellError(options, error);
    return { asked: request, composed: null };
  }
}

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

/** Options for a request with only the new messages: memprefix has stored the earlier ones. */
function behindKept(
  options: AdapterOptions<AgentsModelCall>,
  request: AgentsModelCall,
): AdapterOptions<AgentsModelCall> {
  const { conversationId: name, compose } = options;
  const conversationId = (typeof name === "function" ? name(request) : name) ?? request.conversationId;
  if (conversationId === undefined) return options;
  return { ...options, conversationId, compose: { ...compose, history: "stored" } };
}

/** Whether an event has some of the answer: text, or, in the Responses API's names, a call or a thought. */
function isToken(event: object): boolean {
  const { type, event: raw }: { readonly type?: unknown; readonly event?: { readonly type?: unknown } | null } = event;
  return type === "output_text_delta" || (type === "model" && String(raw?.type).endsWith(".delta"));
}

function usageOf(event: object): AgentsUsage | null {
  const { type, response }: { readonly type?: unknown; readonly response?: { readonly usage?: AgentsUsage } } = event;
  return type === "response_done" ? (response?.usage ?? null) : null;
}

/** A proxy with other methods; the rest runs on the target, which keeps its private fields. */
function withMethods<T extends object>(target: T, methods: object): T {
  return new Proxy(target, {
    get: (_target, name) => {
      if (Object.hasOwn(methods, name)) return Reflect.get(methods, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" && name !== "constructor" ? value.bind(target) : value;
    },
  });
}

export interface AgentsUsage {
  readonly inputTokens?: number | undefined;
  readonly inputTokensDetails?: readonly TokenDetails[] | TokenDetails | undefined;
  readonly requestUsageEntries?: readonly AgentsUsage[] | undefined;
}

type TokenDetails = Readonly<Record<string, number>>;

/** Unreported numbers stay unknown. */
function reportedUsage({ inputTokens, inputTokensDetails: details }: AgentsUsage): ReportedUsage {
  const [only] = Array.isArray(details) ? (details as readonly TokenDetails[]) : [details as TokenDetails | undefined];
  const cachedTokens = only?.["cached_tokens"];
  return {
    ...(inputTokens ? { promptTokens: inputTokens } : {}),
    ...(cachedTokens === undefined ? {} : { cachedTokens }),
  };
}

export interface AgentsRun {
  readonly context: unknown;
  readonly usage: AgentsUsage;
}

type BehindResponse = "agent_end" | "agent_handoff" | "agent_tool_start";

export interface AgentsAgent {
  readonly name: string;
  on(event: BehindResponse, listener: (run: AgentsRun, ...about: unknown[]) => void): unknown;
}

type Report = (usage: ReportedUsage) => Promise<void>;

/** Agents report usage after each response, when they end, hand over or start a tool. A run is known by its context object. */
class RunUsage {
  readonly #listened = new WeakSet<AgentsAgent>();
  readonly #unreported = new WeakMap<object, Map<AgentsAgent, Report[]>>();
  /** Requests that a run's usage has reported. */
  readonly #told = new WeakMap<AgentsRun, number>();

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
    // For several responses, or several runs of one context, it is unknown which used how much.
    if (report === undefined || others.length > 0 || isTold || newest === undefined) return;
    void report(reportedUsage(newest));
  }
}
