/*
 * ai-sdk: a language model middleware for the AI SDK.
 * Enters: a model call, on every step of an agent's loop. Leaves: the same call with a composed prompt; its usage, as feedback.
 * Source: `LanguageModelV3Middleware` of `@ai-sdk/provider` 3 (`ai` 6), `LanguageModelV4Middleware` of 4 (`ai` 7)
 */

import type { LanguageModelMiddleware } from "ai";
import type { EngineHints, MessageLike } from "../service/base/call-types.js";
import { asV3Result, asV3Stream, StreamReader, usageIn } from "./ai-sdk-answer.js";
import { messagesOf, promptOf } from "./ai-sdk-prompt.js";
import {
  type AdapterOptions,
  type ComposedCall,
  composeCall,
  type NameOf,
  type PromptOptions,
  tellError,
} from "./composing.js";

/** {@link AdapterOptions}; each call may also name the user, as `providerOptions.memprefix.userId`. */
export interface AiSdkOptions extends Omit<AdapterOptions<AiSdkCall>, "userId"> {
  readonly userId?: NameOf<AiSdkCall>;
}

/**
 * A middleware that composes the prompt of every call with the user's memories, and reports its usage. The messages that the AI SDK returns have
 * no memories. After a failure the call is sent unmodified, and `onError` is called.
 *
 * `providerOptions.memprefix` overrides the options for one call: `userId`, `agentId`, `conversationId`, `memories` (in any of Mem0's result
 * shapes), and `bypass: true` for a call without memories. The provider does not see it.
 *
 * @example
 * ```ts
 * const model = wrapLanguageModel({
 *   model: openai("gpt-5-mini"),
 *   middleware: memprefixMiddleware({ memprefix: createMemprefix(), userId: "ana", conversationId: "trip" }),
 * });
 * const { text } = await generateText({ model, messages });
 * ```
 */
export function memprefixMiddleware(options: AiSdkOptions): LanguageModelMiddleware {
  // Keyed by the parameters sent, an object for each call: concurrent calls share nothing.
  const composedCalls = new WeakMap<AiSdkCall, ComposedCall<MessageLike>>();
  return {
    specificationVersion: "v3",
    async transformParams({ params, model }) {
      const { named, call, isBypassed } = callOptions(params, (error) => tellError(options, error));
      if (named === null || isBypassed || call.abortSignal?.aborted) return call;
      const { memories, ...names } = named;
      const adapter: AdapterOptions<AiSdkCall> = {
        ...options,
        ...names,
        userId: names.userId ?? options.userId ?? nobody,
        ...(memories === undefined ? {} : { memories: () => memories }),
        compose: { ...termsOf(model), ...options.compose, ...exactIfContinued(call) },
      };
      const composed = await composeCall(adapter, params, () => messagesOf(call.prompt), "chat");
      if (composed === null) return call;
      try {
        const prompt = promptOf(composed.messages) as AiSdkCall["prompt"];
        const sent = withHints({ ...call, prompt }, composed.engine, model.provider);
        composedCalls.set(sent, composed);
        return sent;
      } catch (error) {
        tellError(options, error);
        return call;
      }
    },
    async wrapGenerate({ doGenerate, params, model }) {
      const result = await doGenerate();
      void composedCalls.get(params)?.report(usageIn(result));
      return asV3Result(result, model);
    },
    async wrapStream({ doStream, params, model }) {
      const composed = composedCalls.get(params);
      const started = performance.now();
      const result = await doStream();
      const read = composed === undefined ? result.stream : result.stream.pipeThrough(reading(composed, started));
      return { ...result, stream: asV3Stream(read, model) };
    },
  };
}

function nobody(): null {
  return null;
}

type StreamOf = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>>["stream"];
type Chunk = StreamOf extends ReadableStream<infer C> ? C : never;

function reading(composed: ComposedCall<MessageLike>, started: number) {
  const reader = new StreamReader(started);
  return new TransformStream<Chunk, Chunk>({
    transform(chunk, controller) {
      const usage = reader.take(chunk, performance.now());
      if (usage !== null) void composed.report(usage);
      controller.enqueue(chunk);
    },
  });
}

function termsOf({ provider, modelId }: { readonly provider: string; readonly modelId: string }): PromptOptions {
  return { model: modelId, ...(provider.startsWith("mistral") ? { engine: "mistral" } : {}) };
}

/** OpenAI's Responses with a `previousResponseId` or a `conversation`: the provider has the earlier messages. */
function exactIfContinued({ providerOptions }: AiSdkCall): PromptOptions {
  const { previousResponseId, conversation } = providerOptions?.["openai"] ?? {};
  return previousResponseId != null || conversation != null ? { history: "exact" } : {};
}

export type AiSdkCall = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];

/** `providerOptions.memprefix` of a call. `memories` have any of Mem0's result shapes. */
export interface NamedInCall {
  readonly userId?: string;
  readonly agentId?: string;
  readonly conversationId?: string;
  readonly memories?: unknown;
}

export interface ReadCall {
  /** Null: invalid. */
  readonly named: NamedInCall | null;
  readonly call: AiSdkCall;
  readonly isBypassed: boolean;
}

/** memprefix's proxy composes nothing for a request with this header. */
const BYPASS = "x-memprefix-bypass";

const NAMES = ["userId", "agentId", "conversationId"] as const;
const KNOWN: ReadonlySet<string> = new Set([...NAMES, "memories", "bypass"]);

/** Invalid options are reported and ignored; null counts as absent. */
function callOptions(params: AiSdkCall, onError: (error: unknown) => void): ReadCall {
  // An earlier middleware composed the prompt, or the caller wants none composed.
  const isBypassed = headerIn(params.headers, BYPASS) === "true";
  const given: unknown = params.providerOptions?.["memprefix"];
  if (given === undefined) return { named: {}, call: params, isBypassed };
  const { memprefix: _ours, ...providerOptions } = params.providerOptions ?? {};
  const { providerOptions: _all, ...others } = params;
  const call = Object.keys(providerOptions).length === 0 ? others : { ...others, providerOptions };
  const problem = problemOf(given);
  if (problem !== null) {
    onError(new TypeError(`providerOptions.memprefix${problem}`));
    return { named: null, call, isBypassed };
  }
  const said = Object.entries(given as object).filter(([, value]) => value != null);
  const { bypass, ...named } = Object.fromEntries(said) as NamedInCall & { readonly bypass?: boolean };
  return { named, call, isBypassed: isBypassed || bypass === true };
}

function headerIn(headers: AiSdkCall["headers"], name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** What is wrong with the options, after their name; null: nothing. */
function problemOf(given: unknown): string | null {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return " must be an object";
  const options = given as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(options).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) return `.${unknown} is not a known option`;
  const wrong = NAMES.find((name) => options[name] != null && typeof options[name] !== "string");
  if (wrong !== undefined) return `.${wrong} must be a text`;
  const { bypass } = options;
  return bypass == null || typeof bypass === "boolean" ? null : ".bypass must be true or false";
}

const OPENAI_OPTIONS: Readonly<Record<string, string>> = {
  prompt_cache_key: "promptCacheKey",
  prompt_cache_options: "promptCacheOptions",
};
/** Providers with OpenAI's options, by the beginning of their names. */
const OPENAI_PROVIDERS: ReadonlySet<string> = new Set(["openai", "azure", "gateway"]);

/**
 * Adds the engine's headers, and its body fields as provider options; the caller's values win. Providers for OpenAI-compatible engines put options
 * under their own name into the body.
 */
function withHints(call: AiSdkCall, { fields, headers }: EngineHints, provider: string): AiSdkCall {
  const added = Object.entries({ ...headers, [BYPASS]: "true" }).filter(
    ([name]) => headerIn(call.headers, name) === undefined,
  );
  const [name = ""] = provider.split(".");
  const isOpenAi = OPENAI_PROVIDERS.has(name);
  const options = Object.entries(fields).flatMap(([field, value]): [string, unknown][] => {
    if (!isOpenAi) return [[field, value]];
    const option = OPENAI_OPTIONS[field];
    return option === undefined ? [] : [[option, value]];
  });
  const sent = { ...call, headers: { ...call.headers, ...Object.fromEntries(added) } };
  if (options.length === 0) return sent;
  const place = isOpenAi ? "openai" : name;
  const own = { ...Object.fromEntries(options), ...call.providerOptions?.[place] };
  return { ...sent, providerOptions: { ...call.providerOptions, [place]: own as ProviderOptions } };
}

type ProviderOptions = NonNullable<AiSdkCall["providerOptions"]>[string];
