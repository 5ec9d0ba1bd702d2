import type { AnswerToken, GenerationEvent, GenerationUsage, LikelyToken } from "./generation.js";

type End = Extract<GenerationEvent, { readonly kind: "end" }>;

/** Fields common to all chunks of an answer. */
export interface AnswerHead {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** An OpenAI chat completion. */
export function chatCompletion(
  head: AnswerHead,
  content: string,
  { finishReason, usage }: End,
  tokens?: readonly AnswerToken[],
) {
  return {
    ...head,
    object: "chat.completion",
    choices: [
      { index: 0, message: { role: "assistant", content }, logprobs: logprobsOf(tokens), finish_reason: finishReason },
    ],
    usage: openAiUsage(usage),
    timings: timingsOf(usage),
  };
}

/** One chunk of a streamed answer. */
export function chatChunk(
  head: AnswerHead,
  delta: { readonly role?: "assistant"; readonly content?: string },
  finishReason: End["finishReason"] | null = null,
  tokens?: readonly AnswerToken[],
) {
  return {
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: logprobsOf(tokens), finish_reason: finishReason }],
  };
}

/** The last chunk of a streamed answer, where usage was requested. */
export function usageChunk(head: AnswerHead, usage: GenerationUsage) {
  return {
    ...head,
    object: "chat.completion.chunk",
    choices: [],
    usage: openAiUsage(usage),
    timings: timingsOf(usage),
  };
}

function logprobsOf(tokens: readonly AnswerToken[] | undefined) {
  if (tokens === undefined) return null;
  return {
    content: tokens.map((token) => ({ ...likelyToken(token), top_logprobs: token.top.map(likelyToken) })),
    refusal: null,
  };
}

/** OpenAI's value for a probability of 0, whose logarithm JSON cannot represent. */
const NEVER = -9_999;

function likelyToken({ text, logprob }: LikelyToken) {
  const bytes = text.includes("\ufffd") ? null : [...Buffer.from(text)];
  return { token: text, logprob: Math.max(NEVER, logprob), bytes };
}

function openAiUsage({ promptTokens, cachedTokens, completionTokens }: GenerationUsage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

/** llama.cpp's names; milliseconds. `ttft_ms` counts from the request, queue included. */
function timingsOf({ promptTokens, cachedTokens, completionTokens, queueMs, ttftMs, totalMs }: GenerationUsage) {
  return {
    cache_n: cachedTokens,
    prompt_n: promptTokens - cachedTokens,
    prompt_ms: ttftMs === null ? null : ttftMs - queueMs,
    predicted_n: completionTokens,
    predicted_ms: ttftMs === null ? null : totalMs - ttftMs,
    queue_ms: queueMs,
    ttft_ms: ttftMs,
  };
}
