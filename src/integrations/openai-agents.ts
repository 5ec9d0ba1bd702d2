/* memprefix/openai-agents: memories for agents of the OpenAI Agents SDK, by models that compose their requests. */

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
 * A provider's models with memories in their requests; no run's state or session stores them. Make one for each user and conversation.
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
