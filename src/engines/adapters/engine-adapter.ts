/*
 * adapters/: one adapter per engine family; `engines.ts` lists them.
 * In: a composed prompt with its cache keys and the ends that later prompts reuse (`AdapterPrompt`); an engine's answer.
 * Out: messages with cache breakpoints, body fields and headers (`EngineEmission`); token counts (`EngineUsage`), null where unreported.
 * Pure: nothing is sent here. `provider-limits.ts` holds what providers document, `reported-usage.ts` reads the usage formats.
 */

import type { ChatMessage, RequestId, ToolMemories } from "../../core/index.js";

/** The engines that a caller can name; `generic` is anything that speaks OpenAI's chat API. */
export const ENGINE_NAMES = [
  "generic",
  "mistral",
  "vllm",
  "sglang",
  "llamacpp",
  "openai",
  "openai-breakpoints",
  "anthropic",
] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

/** A composed prompt as an engine's adapter sees it. */
export interface AdapterPrompt {
  readonly requestId: RequestId;
  /** Opaque and stable, a different one for each tenant: what keeps caches apart (vLLM's `cache_salt`). */
  readonly tenantKey: string;
  /** Opaque and stable, a different one for each scope: what keeps a user's prompts on one replica (`prompt_cache_key`). */
  readonly scopeKey: string;
  readonly messages: readonly ChatMessage[];
  /** Indexes of messages at whose end later prompts are expected to go on, most useful first. */
  readonly reusableMessages: readonly number[];
  /** Index of the message whose injected memories later prompts are expected to repeat, whatever then follows them in it. */
  readonly reusableMemories?: number;
  /** Index of the message at whose end an earlier prompt ended or went another way: what can be cached by now reaches that far. */
  readonly cachedMessage?: number;
  /** Marks of the engine's own that the caller set outside the messages, on tools say; they count against its limit. Default 0. */
  readonly marksElsewhere?: number;
  /** The model that the prompt goes to, where it is known: limits differ between models. */
  readonly model?: string;
  /** Tokens from the front, tools included, to the end of each message, where they are known: too short a prefix gets no mark. */
  readonly prefixTokens?: readonly number[];
}

/** What to send to an engine beside the model and its settings. */
export interface EngineEmission {
  /** The messages, with marks of the engine's own where it has any. */
  readonly messages: readonly ChatMessage[];
  /** Fields to put into the engine's request body. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

/** Token counts of one request as an engine reported them. Null: it did not say, which is not zero. */
export interface EngineUsage {
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  /** Tokens that went into the cache and are billed for it. */
  readonly writtenTokens: number | null;
  readonly completionTokens: number | null;
  /** What the engine said, as it said it. */
  readonly raw: unknown;
}

/** One engine family: what it is sent, and how what it reports is read. Every adapter passes `test/engines/adapters/engine-adapter.suite.ts`. */
export interface EngineAdapter {
  readonly name: EngineName;
  /** Why it gives no log probabilities of its answers' tokens, in a few words. Absent: nothing is known against it. */
  readonly noLogprobs?: string;
  /** Where memories must stand behind a tool's result. Absent: the engine takes a user's message there, or will say that it does not. */
  readonly toolMemories?: ToolMemories;
  emit(prompt: AdapterPrompt): EngineEmission;
  /** Reads the usage out of an answer, or out of the last chunk of a streamed one. Tolerant: what it does not know is null. */
  readUsage(answer: unknown): EngineUsage;
}

/** The header by which engines, gateways and their logs name a request; vLLM takes its request id from it. */
export function requestIdHeader(requestId: RequestId): Readonly<Record<string, string>> {
  return { "x-request-id": requestId };
}
