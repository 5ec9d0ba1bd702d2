import { randomUUID } from "node:crypto";
import { z } from "zod";
import { append } from "../../core/text/collections.js";
import { withoutFilePaths } from "../../core/text/file-paths.js";
import { passedOn, type Upstream, UpstreamError } from "../upstream/upstream.js";
import {
  type AnswerToken,
  type ChatModel,
  ContextLengthError,
  EmbeddedEngineError,
  type GenerationEvent,
  type GenerationRequest,
  type GenerationUsage,
  type LikelyToken,
  QueueFullError,
} from "./generation.js";

/** Answers requests as an HTTP upstream would, without a socket. Throws only where the request's own signal is aborted. */
export type FetchHandler = (request: Request) => Promise<Response>;

/**
 * An engine as an OpenAI-compatible upstream: `POST /v1/chat/completions`, streamed and not, and `GET /v1/models`. Usage is measured:
 * `prompt_tokens_details.cached_tokens` is what the KV cache held. Errors have OpenAI's form and codes (`context_length_exceeded`).
 * The HTTP server limits a body's size. `onFault` gets errors that no request caused.
 */
export function openAiUpstream(engine: ChatModel, onFault: (error: unknown) => void = () => {}): FetchHandler {
  const created = seconds();
  return async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/v1/models") {
      if (request.method !== "GET") return refused(onlyAnswers("GET"), { allow: "GET" });
      const model = { id: engine.model, object: "model", created, owned_by: "memprefix" };
      return Response.json({ object: "list", data: [{ ...model, max_model_len: engine.contextTokens }] });
    }
    if (pathname !== "/v1/chat/completions") return refused(failure(404, REQUEST, `There is no ${pathname}.`));
    if (request.method !== "POST") return refused(onlyAnswers("POST"), { allow: "POST" });
    let body: unknown;
    try {
      body = await request.json();
    } catch {
      request.signal.throwIfAborted();
      return refused(failure(400, REQUEST, "The body is not JSON."));
    }
    const chat = readOpenAiChat(body);
    if ("param" in chat) return refused(failure(400, REQUEST, `${chat.param}: ${chat.message}`, null, chat.param));
    const head: AnswerHead = { id: `chatcmpl-${randomUUID()}`, model: engine.model, created: seconds() };
    try {
      if (!chat.stream) return await wholeAnswer(engine, { ...chat.generation, signal: request.signal }, head);
      return await streamedAnswer(engine, chat.generation, request, head, chat.includeUsage, onFault);
    } catch (error) {
      if (request.signal.aborted) throw error;
      const failed = failureOf(error, onFault);
      return refused(failed, failed.status === 429 || failed.status === 503 ? { "retry-after": "1" } : {});
    }
  };
}

async function wholeAnswer(engine: ChatModel, generation: GenerationRequest, head: AnswerHead): Promise<Response> {
  let text = "";
  const tokens: AnswerToken[] = [];
  for await (const event of engine.generate(generation)) {
    if (event.kind === "end") {
      const told = generation.topLogprobs === undefined ? undefined : tokens;
      return Response.json(chatCompletion(head, text, event, told));
    }
    text += event.text;
    append(tokens, event.tokens ?? []);
  }
  throw new Error("the engine's answer has no end");
}

async function streamedAnswer(
  engine: ChatModel,
  generation: GenerationRequest,
  request: Request,
  head: AnswerHead,
  includeUsage: boolean,
  onFault: (error: unknown) => void,
): Promise<Response> {
  // A reader that stops ends the generation: cancelling the body does not abort the request's signal.
  const reading = new AbortController();
  // Node updates a request's signal only while the request itself is referenced.
  const abort = () => reading.abort(request.signal.reason);
  if (request.signal.aborted) abort();
  request.signal.addEventListener("abort", abort, { once: true });
  const release = () => request.signal.removeEventListener("abort", abort);
  const events = engine.generate({ ...generation, signal: reading.signal });
  // An error before the first token still gets a status of its own.
  const first = await events.next().catch((error: unknown) => {
    release();
    throw error;
  });
  async function* pieces(): AsyncGenerator<object | "[DONE]", void, undefined> {
    try {
      yield chatChunk(head, { role: "assistant", content: "" });
      for (let next = first; !next.done; next = await events.next()) {
        const event = next.value;
        if (event.kind === "text") yield chatChunk(head, { content: event.text }, null, event.tokens);
        else {
          yield chatChunk(head, {}, event.finishReason);
          if (includeUsage) yield usageChunk(head, event.usage);
          yield "[DONE]";
        }
      }
    } catch (error) {
      if (reading.signal.aborted) throw error;
      yield { error: failureOf(error, onFault).error };
    } finally {
      release();
      await events.return();
    }
  }
  const sent = pieces();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { value, done } = await sent.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${value === "[DONE]" ? value : JSON.stringify(value)}\n\n`));
    },
    cancel: async (reason) => {
      reading.abort(reason);
      await sent.return();
    },
  });
  const headers = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
  return new Response(body, { headers });
}

/** An error in OpenAI's form, and the status of an answer that is one. */
interface Failure {
  readonly status: number;
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** The type of errors that are the request's. */
const REQUEST = "invalid_request_error";

function failure(
  status: number,
  type: string,
  message: string,
  code: string | null = null,
  param: string | null = null,
): Failure {
  return { status, error: { message, type, param, code } };
}

function onlyAnswers(method: string): Failure {
  return failure(405, REQUEST, `Only ${method} is answered here.`);
}

function failureOf(error: unknown, onFault: (error: unknown) => void): Failure {
  if (error instanceof ContextLengthError) return failure(400, REQUEST, error.message, error.code, "messages");
  if (error instanceof QueueFullError) return failure(429, "rate_limit_error", error.message, error.code);
  if (error instanceof EmbeddedEngineError)
    return failure(503, "server_error", withoutFilePaths(error.message), error.code);
  onFault(error);
  // An unexpected error's message may quote the prompt.
  return failure(500, "server_error", "The engine failed.");
}

function refused({ status, error }: Failure, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ error }, { status, headers });
}

function seconds(): number {
  return Math.floor(Date.now() / 1_000);
}

const NAME = "memprefix:engine";
/** Only the path is used; nothing listens there. */
const ADDRESS = "http://engine.invalid/v1/";

/** The embedded engine as the proxy's upstream, without a socket: calls go to the handler, answers are streamed back. */
export function embeddedUpstream(answer: FetchHandler): Upstream {
  return {
    name: NAME,
    send: async ({ method, path, query, headers, body }, signal) => {
      const failureOf = (error: unknown) =>
        new UpstreamError(NAME, signal.aborted ? { kind: "aborted" } : { kind: "broken", cause: nameOf(error) });
      try {
        const own = passedOn(headers).map(([name, value]): [string, string] => [name, value]);
        const plain = body;
        const request = new Request(`${ADDRESS}${path}${query}`, { method, headers: own, body: plain, signal });
        const response = await answer(request);
        return { status: response.status, headers: [...response.headers], body: bytesOf(response, failureOf) };
      } catch (error) {
        throw failureOf(error);
      }
    },
  };
}

async function* bytesOf(
  { body }: Response,
  failureOf: (error: unknown) => UpstreamError,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (body !== null) for await (const bytes of body) yield bytes;
  } catch (error) {
    throw failureOf(error);
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}

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
function readOpenAiChat(body: unknown): OpenAiChatRequest | OpenAiIssue {
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
function chatCompletion(
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
function chatChunk(
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
function usageChunk(head: AnswerHead, usage: GenerationUsage) {
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
