import type { ChatMessage } from "../core/index.js";
import { type AgentsItem, instructionsIn, itemsOf, messagesOf, placedInResults } from "./agents-items.js";
import { type AgentsUsage, reportedUsage } from "./agents-usage.js";
import { type AdapterOptions, type ComposedCall, composeCall, tellError } from "./composing.js";

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
 * or read from the request: make one for each user and conversation, or use `memstemFilter`, which knows the run's context.
 *
 * @example
 * ```ts
 * const modelProvider = memstemModels(new OpenAIProvider(), { memstem, userId, conversationId });
 * await new Runner({ modelProvider }).run(agent, question, { session });
 * ```
 */
export function memstemModels<Provider extends AgentsModelProvider>(
  provider: Provider,
  options: AdapterOptions<AgentsModelCall>,
): Provider {
  const getModel: AgentsModelProvider["getModel"] = async (name) =>
    memstemModel(await provider.getModel(name), options);
  return withMethods(provider, { getModel });
}

/** A model with memories in what it is asked, for an agent whose `model` is an object. See {@link memstemModels}. */
export function memstemModel<Model extends AgentsModel>(model: Model, options: AdapterOptions<AgentsModelCall>): Model {
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
    isNewAlone ? placedInResults(behindKept(options, request), messages) : options,
    request,
    messages,
    "chat",
  );
  if (composed === null) return { asked: request, composed };
  try {
    const items = itemsOf(composed.messages, given);
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

/** Options for a request that holds what is new alone: what was said before is memstem's to know. */
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
