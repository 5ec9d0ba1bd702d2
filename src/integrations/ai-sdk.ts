/*
 * ai-sdk: a language model middleware for the AI SDK.
 * Enters: a call of a model, on every step of an agent's loop. Leaves: the same call with a composed prompt; its usage, as feedback.
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

/** {@link AdapterOptions}; the user may also be named by each call, as `providerOptions.memprefix.userId`. */
export interface AiSdkOptions extends Omit<AdapterOptions<AiSdkCall>, "userId"> {
  /** Whose memories. A call that names nobody is sent unmodified. */
  readonly userId?: NameOf<AiSdkCall>;
}

/**
 * A middleware that composes the prompt of every call with the user's memories, and reports its usage. It keeps nothing in the messages that
 * the AI SDK gives back. Whatever fails, the call is sent unmodified, and `onError` is called.
 *
 * A call names what differs from the options in `providerOptions.memprefix`: `userId`, `agentId`, `conversationId`, `memories` (in any of
 * Mem0's result shapes), and `bypass: true` for a call without memories. The provider does not see it.
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
  // By the parameters that a call is sent with, an object of its own: concurrent calls share nothing.
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

/** Passes a stream on unmodified and reports its usage once it ended as it should. */
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

/** Engine and model say where memories go after a tool result. */
function termsOf({ provider, modelId }: { readonly provider: string; readonly modelId: string }): PromptOptions {
  return { model: modelId, ...(provider.startsWith("mistral") ? { engine: "mistral" } : {}) };
}

/** The provider has the messages before these, which are no window: OpenAI's Responses with a `previousResponseId` or a `conversation`. */
function exactIfContinued({ providerOptions }: AiSdkCall): PromptOptions {
  const { previousResponseId, conversation } = providerOptions?.["openai"] ?? {};
  return previousResponseId != null || conversation != null ? { history: "exact" } : {};
}

/** A call of a model as the middleware of the installed AI SDK gets it: `LanguageModelV3CallOptions` or `LanguageModelV4CallOptions`. */
export type AiSdkCall = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];

/** What a call says of itself in `providerOptions.memprefix`. */
export interface NamedInCall {
  readonly userId?: string;
  readonly agentId?: string;
  readonly conversationId?: string;
  /** In any of Mem0's result shapes. */
  readonly memories?: unknown;
}

/** A call, and what it says to memprefix. */
export interface ReadCall {
  /** Null: it cannot be read. */
  readonly named: NamedInCall | null;
  /** The call without what it says to memprefix; the same object where it says nothing. */
  readonly call: AiSdkCall;
  /** Whether it is to be sent as it is. */
  readonly isBypassed: boolean;
}

/** The header with which memprefix's proxy composes nothing. */
const BYPASS = "x-memprefix-bypass";

const NAMES = ["userId", "agentId", "conversationId"] as const;
const KNOWN: ReadonlySet<string> = new Set([...NAMES, "memories", "bypass"]);

/** Reads a call's options; null counts as absent. Invalid options are reported, and the call has none. */
function callOptions(params: AiSdkCall, onError: (error: unknown) => void): ReadCall {
  // A middleware in front of this one composed the prompt, or the caller wants none composed.
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

/** The value of a header, whose name may have capitals. */
function headerIn(headers: AiSdkCall["headers"], name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** What is wrong with the options, from their name on; null: nothing. */
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

/** OpenAI's own body fields, as its provider's options name them. */
const OPENAI_OPTIONS: Readonly<Record<string, string>> = {
  prompt_cache_key: "promptCacheKey",
  prompt_cache_options: "promptCacheOptions",
};
/** Providers that take OpenAI's options, by what their names begin with. */
const OPENAI_PROVIDERS: ReadonlySet<string> = new Set(["openai", "azure", "gateway"]);

/**
 * A call with what the engine is to be sent along: headers, and fields of its body as options of the provider. OpenAI's provider has names of
 * its own for them; those for OpenAI-compatible engines put options under their own name into the body; others ignore what they do not know.
 * What the caller set stays. Through memprefix's proxy the prompt is not composed again.
 *
 * @param provider the model's, such as `openai.responses`
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
