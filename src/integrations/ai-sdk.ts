/*
 * ai-sdk: a language model middleware for the AI SDK.
 * Enters: a call of a model, on every step of an agent's loop. Leaves: the same call with a composed prompt; its usage, as feedback.
 * Source: `LanguageModelV3Middleware` of `@ai-sdk/provider` 3 (`ai` 6), `LanguageModelV4Middleware` of 4 (`ai` 7)
 */

import type { LanguageModelMiddleware } from "ai";
import { keepsThoughtsByName } from "../core/prompt/kept-thoughts.js";
import type { MessageLike } from "../service/base/call-types.js";
import { asV3Result, asV3Stream, StreamReader, usageIn } from "./ai-sdk-answer.js";
import { type AiSdkCall, callOptions, withHints } from "./ai-sdk-call.js";
import { messagesOf, promptOf } from "./ai-sdk-prompt.js";
import {
  type AdapterOptions,
  type ComposedCall,
  composeCall,
  type NameOf,
  type PromptOptions,
  tellError,
} from "./composing.js";

export type { AiSdkCall } from "./ai-sdk-call.js";

/** {@link AdapterOptions}; the user may also be named by each call, as `providerOptions.memstem.userId`. */
export interface AiSdkOptions extends Omit<AdapterOptions<AiSdkCall>, "userId"> {
  /** Whose memories. A call that names nobody is sent unmodified. */
  readonly userId?: NameOf<AiSdkCall>;
}

/**
 * A middleware that composes the prompt of every call with the user's memories, and reports its usage. It keeps nothing in the messages that
 * the AI SDK gives back. Whatever fails, the call is sent unmodified, and `onError` is called.
 *
 * A call names what differs from the options in `providerOptions.memstem`: `userId`, `agentId`, `conversationId`, `memories` (in any of
 * Mem0's result shapes), and `bypass: true` for a call without memories. The provider does not see it.
 *
 * @example
 * ```ts
 * const model = wrapLanguageModel({
 *   model: openai("gpt-5-mini"),
 *   middleware: memstemMiddleware({ memstem: createMemstem(), userId: "ana", conversationId: "trip" }),
 * });
 * const { text } = await generateText({ model, messages });
 * ```
 */
export function memstemMiddleware(options: AiSdkOptions): LanguageModelMiddleware {
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

/**
 * Where a user's message after a tool's result is rejected (Mistral's API), or takes the turn's thoughts away (Qwen3, GLM, …), memories go
 * into the result.
 */
function termsOf({ provider, modelId }: { readonly provider: string; readonly modelId: string }): PromptOptions {
  return provider.startsWith("mistral") || keepsThoughtsByName(modelId) ? { toolMemories: "in_result" } : {};
}

/** The provider has the messages before these, which are no window: OpenAI's Responses with a `previousResponseId` or a `conversation`. */
function exactIfContinued({ providerOptions }: AiSdkCall): PromptOptions {
  const { previousResponseId, conversation } = providerOptions?.["openai"] ?? {};
  return previousResponseId != null || conversation != null ? { history: "exact" } : {};
}
