import { z } from "zod";
import type { AnswerToken, GenerationEvent, GenerationRequest, GenerationUsage, LikelyToken } from "./generation.js";

const textPart = z.looseObject({ type: z.literal("text"), text: z.string() });
const message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.union([z.string(), z.array(textPart)], "must be text, or parts of the type text").nullish(),
});
const absent = (what: string) => z.array(z.unknown()).max(0, what).nullish();

/**
 * The body of OpenAI's `POST /v1/chat/completions`, as far as this engine supports it. Fields without effect here are ignored; unsupported
 * ones that would change the answer's form (`tools`, several choices) are rejected.
 */
const chatBody = z.looseObject({
  model: z.string().nullish(),
  messages: z.array(message).min(1),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  seed: z.int().min(0).max(0xffff_ffff).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
  n: z.literal(1, "this engine gives one answer").nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  response_format: z.looseObject({ type: z.literal("text", "this engine answers in text") }).nullish(),
  tools: absent("this engine calls no tools"),
  functions: absent("this engine calls no functions"),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  cache_salt: z.string().nullish(),
  user: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
});

/** A parsed chat request. */
export interface OpenAiChatRequest {
  readonly generation: GenerationRequest;
  readonly stream: boolean;
  /** Whether a stream ends with a usage chunk. */
  readonly includeUsage: boolean;
}

/** The first error in a body. */
export interface OpenAiIssue {
  readonly param: string;
  readonly message: string;
}

/** Parses a body, or returns its first error. */
export function readOpenAiChat(body: unknown): OpenAiChatRequest | OpenAiIssue {
  const parsed = chatBody.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { param: issue?.path.join(".") ?? "", message: issue?.message ?? "is wrong" };
  }
  const { messages, stop, stream, stream_options, ...fields } = parsed.data;
  const generation: GenerationRequest = {
    messages,
    maxTokens: fields.max_completion_tokens ?? fields.max_tokens ?? undefined,
    // OpenAI's default.
    temperature: fields.temperature ?? 1,
    topP: fields.top_p ?? undefined,
    seed: fields.seed ?? undefined,
    stop: typeof stop === "string" ? [stop] : (stop ?? undefined),
    cacheSalt: fields.cache_salt ?? undefined,
    caller: fields.prompt_cache_key ?? fields.user ?? fields.cache_salt ?? undefined,
    topLogprobs: fields.logprobs ? (fields.top_logprobs ?? 0) : undefined,
  };
  const issue = logprobsIssue(generation, fields.top_logprobs ?? null);
  if (issue !== null) return issue;
  return { generation, stream: stream ?? false, includeUsage: stream_options?.include_usage ?? false };
}

/** llama.cpp reports the sampling probabilities; only at these settings they equal the model's. */
function logprobsIssue(
  { topLogprobs, temperature, topP }: GenerationRequest,
  askedFor: number | null,
): OpenAiIssue | null {
  if (topLogprobs === undefined) {
    return askedFor === null ? null : { param: "top_logprobs", message: "needs logprobs" };
  }
  if (temperature !== 0 && (temperature !== 1 || (topP ?? 1) !== 1)) {
    return { param: "logprobs", message: "are given at temperature 0, or at 1 with a top_p of 1" };
  }
  return null;
}

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
