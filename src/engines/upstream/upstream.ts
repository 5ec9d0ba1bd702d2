/*
 * upstream/: the connection to an engine and readers of its answers, for every engine family. `adapters/` makes what is sent.
 * Enters: a call (path, headers, body) with an abort signal. Leaves: the answer byte for byte, or an `UpstreamError`.
 */

import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { urlToHttpOptions } from "node:url";
import { withoutFilePaths } from "../../core/text/file-paths.js";

export type UpstreamFailure =
  | { readonly kind: "unreachable"; readonly cause: string }
  | { readonly kind: "timeout"; readonly afterMs: number }
  /** It began to answer, then sent nothing for so long. */
  | { readonly kind: "stalled"; readonly afterMs: number }
  /** The connection ended before the answer did, or the answer is not HTTP. */
  | { readonly kind: "broken"; readonly cause: string }
  | { readonly kind: "aborted" };

/** A call failed before or during the answer. The message names the engine and is safe to show: no prompt, no key, no file path. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  constructor(
    readonly upstream: string,
    readonly failure: UpstreamFailure,
  ) {
    super(describeFailure(upstream, failure));
  }
}

function describeFailure(upstream: string, failure: UpstreamFailure): string {
  switch (failure.kind) {
    case "unreachable":
      return `the upstream engine at ${upstream} could not be reached: ${withoutFilePaths(failure.cause)}`;
    case "timeout":
      return `the upstream engine at ${upstream} did not begin to answer within ${failure.afterMs} ms`;
    case "stalled":
      return `the upstream engine at ${upstream} stalled: it sent nothing for ${failure.afterMs} ms in the middle of its answer`;
    case "broken":
      return `the upstream engine at ${upstream} broke off its answer: ${withoutFilePaths(failure.cause)}`;
    case "aborted":
      return `the call to the upstream engine at ${upstream} was aborted by the caller`;
  }
}

export interface UpstreamCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Relative to the base URL: `chat/completions`. With a leading slash, beside the API: `/metrics` of `http://127.0.0.1:8000/v1`. */
  readonly path: string;
  /** The client's, with `?`, or empty. */
  readonly query: string;
  /** The client's; hop-by-hop headers and memprefix's are dropped. */
  readonly headers: Iterable<HeaderPair>;
  readonly body: string | Uint8Array | UploadedBody | null;
  /** Whether it has effects, or an uploaded body: it is then sent only once, on a connection of its own, which cannot be stale. Default: no. */
  readonly isOnce?: boolean;
  /** Whether no client waits for it. Default: no. */
  readonly isBackground?: boolean;
}

/** A body that is sent as it arrives. If it fails, so does the call, with the same error. */
export interface UploadedBody {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** In bytes; null: unknown. */
  readonly length: number | null;
}

/** An engine's answer of any status; the body is unmodified and streamed. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  /** Can be read once. Ending it early closes the connection. Throws {@link UpstreamError}. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Closes the connection; a read in progress fails. Absent: there is none. */
  readonly close?: () => void;
}

export interface Upstream {
  /** Its address, without credentials. */
  readonly name: string;
  /** Resolves with the first byte of any answer; rejects only with {@link UpstreamError}. `signal` also stops reading the body. */
  send(call: UpstreamCall, signal: AbortSignal): Promise<UpstreamAnswer>;
}

/** Calls back after some milliseconds; the function returned cancels that. */
export type After = (ms: number, run: () => void) => () => void;

const processAfter: After = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

export interface UpstreamOptions {
  /** Base URL, as for OpenAI's clients: `http://127.0.0.1:8000/v1`. */
  readonly url: string;
  /** Replaces the client's key. */
  readonly apiKey?: string | undefined;
  /** Of the first byte. */
  readonly timeoutMs: number;
  /** Of each further read. Default: `timeoutMs`. */
  readonly idleMs?: number | undefined;
  readonly after?: After | undefined;
}

const RESET_CONTENT = 205;

/** An engine that breaks a kept connection later than this had the request, and may have worked on it. */
const STALE_WITHIN_MS = 1_000;
/** Failures of a kept connection that the engine had closed; EPIPE while a long body is written. */
const CLOSED = new Set(["ECONNRESET", "EPIPE"]);

/** Opens no connection: the first call does, and it is kept alive. */
export function openUpstream(options: UpstreamOptions): Upstream {
  const { url, apiKey, timeoutMs, idleMs = timeoutMs, after = processAfter } = options;
  const base = new URL(url);
  const api = base.pathname.replace(/\/+$/, "");
  const beside = api.replace(/\/[^/]*$/, "");
  const name = `${base.origin}${api}`;
  const targetOf = ({ path, query }: UpstreamCall) => {
    const target = new URL(base);
    target.pathname = path.startsWith("/") ? `${beside}${path}` : `${api}/${path}`;
    for (const [field, value] of new URLSearchParams(query)) target.searchParams.append(field, value);
    return urlToHttpOptions(target);
  };
  const attemptTo = async (call: UpstreamCall, signal: AbortSignal, isAgain: boolean): Promise<UpstreamAnswer> => {
    if (signal.aborted) throw new UpstreamError(name, { kind: "aborted" });
    const agent = isAgain || call.isOnce === true ? ({ agent: false } as const) : {};
    const attempt = openRequest({ ...targetOf(call), ...agent }, call, apiKey);
    const sentAt = performance.now();
    let failure: UpstreamFailure | null = null;
    const stop = (why: UpstreamFailure) => {
      failure ??= why;
      attempt.destroy();
    };
    const abandon = () => stop({ kind: "aborted" });
    signal.addEventListener("abort", abandon, { once: true });
    const release = () => signal.removeEventListener("abort", abandon);
    const start = () => after(timeoutMs, () => stop({ kind: "timeout", afterMs: timeoutMs }));
    let cancel = start();
    const restart = () => {
      cancel();
      cancel = start();
    };
    let response: IncomingMessage | null = null;
    try {
      response = await responseTo(attempt, call, restart);
      const rest: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]();
      // This status has no content (RFC 9110 §15.3.6), even if bytes follow.
      if (response.statusCode === RESET_CONTENT) attempt.destroy();
      const first: IteratorResult<Uint8Array> =
        response.statusCode === RESET_CONTENT ? { done: true, value: undefined } : await rest.next();
      const body = new AnswerBody(first, rest, {
        whenIdle: () => after(idleMs, () => stop({ kind: "stalled", afterMs: idleMs })),
        errorFor: (error) => new UpstreamError(name, failure ?? { kind: "broken", cause: causeOf(error) }),
        release,
        destroy: () => attempt.destroy(),
      });
      const headers = passedOn(headerPairs(response.rawHeaders));
      return { status: response.statusCode ?? 502, headers, body, close: abandon };
    } catch (error) {
      release();
      if (error instanceof UploadError) throw error.cause;
      const cause = causeOf(error);
      const isUnanswered = failure === null && response === null;
      const wasClosed = attempt.reusedSocket && CLOSED.has(cause) && performance.now() - sentAt < STALE_WITHIN_MS;
      // The engine had closed a kept connection. A completion has no side effects, so it is retried on a new one: all kept ones may be closed.
      if (isUnanswered && wasClosed) return attemptTo(call, signal, true);
      const wasReached = response !== null || error instanceof NoAnswerError || cause.startsWith("HPE_");
      throw new UpstreamError(name, failure ?? { kind: wasReached ? "broken" : "unreachable", cause });
    } finally {
      cancel();
    }
  };
  return { name, send: (call, signal) => attemptTo(call, signal, false) };
}

function openRequest(
  target: RequestOptions,
  { method, headers, body }: UpstreamCall,
  apiKey: string | undefined,
): ClientRequest {
  // Without a prototype: a header may be called `constructor` or `__proto__`.
  const sent: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of passedOn(headers)) sent[name] = [...[sent[name] ?? []].flat(), value];
  // The body is forwarded and also parsed, so it must not be compressed.
  sent["accept-encoding"] = "identity";
  if (typeof target.auth === "string") delete sent["authorization"];
  if (apiKey !== undefined) {
    delete sent["x-api-key"];
    delete sent["authorization"];
    if (isAnthropic(target)) sent["x-api-key"] = apiKey;
    else sent["authorization"] = `Bearer ${apiKey}`;
  }
  if (body === null) delete sent["content-type"];
  else {
    // An engine that answers early, and closes, would break its own answer off.
    if (isUploaded(body)) sent["connection"] = "keep-alive";
    else sent["content-type"] ??= "application/json";
    const length = isUploaded(body) ? body.length : Buffer.byteLength(body);
    if (length !== null) sent["content-length"] = String(length);
  }
  return (target.protocol === "https:" ? httpsRequest : httpRequest)({ ...target, method, headers: sent });
}

/** Source: https://platform.claude.com/docs/en/api/overview, "Authentication" */
function isAnthropic({ hostname }: RequestOptions): boolean {
  return hostname === "api.anthropic.com";
}

class NoAnswerError extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

function isUploaded(body: NonNullable<UpstreamCall["body"]>): body is UploadedBody {
  return typeof body !== "string" && !(body instanceof Uint8Array);
}

/** An upload failed before the engine had all of it. */
class UploadError extends Error {}

/** Sends an upload as fast as the engine takes it. Stops, without an error, when the call is over. */
async function upload(request: ClientRequest, { chunks }: UploadedBody, onProgress: () => void): Promise<void> {
  const over = new Promise((resolve) => request.once("close", resolve));
  try {
    for await (const chunk of chunks) {
      if (request.destroyed) return;
      onProgress();
      if (!request.write(chunk)) await Promise.race([once(request, "drain"), over]);
    }
    onProgress();
    request.end();
  } catch (cause) {
    request.destroy(new UploadError("upload", { cause }));
  }
}

/** @param onProgress called when a part of an upload is sent */
function responseTo(request: ClientRequest, { body }: UpstreamCall, onProgress: () => void): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", (response) => {
      // Node takes a 101 that names no protocol for a final answer.
      if ((response.statusCode ?? 0) >= 200) return resolve(response);
      request.destroy();
      return reject(new NoAnswerError("SWITCHED_PROTOCOLS"));
    });
    // An unrequested upgrade: Node hands over the socket, so it has to be closed here.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new NoAnswerError("SWITCHED_PROTOCOLS"));
    });
    // Not `once`: a later error is the body's, and must not be unhandled.
    request.on("error", reject);
    request.once("close", () => reject(new NoAnswerError("CLOSED")));
    if (body !== null && isUploaded(body)) void upload(request, body, onProgress);
    else request.end(body ?? undefined);
  });
}

/** A system error's code, which quotes nothing that was sent. */
function causeOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return error instanceof Error ? error.name : "unknown";
}

interface AnswerBodyParts {
  /** Starts a read's timeout; returns its cancellation. Time between reads does not count: a slow reader is not the engine's fault. */
  readonly whenIdle: () => () => void;
  readonly errorFor: (error: unknown) => Error;
  readonly release: () => void;
  readonly destroy: () => void;
}

/** Not a generator, because ending it before the first read has to close the connection too. */
class AnswerBody implements AsyncIterableIterator<Uint8Array> {
  #first: IteratorResult<Uint8Array> | null;
  #isOver = false;

  constructor(
    first: IteratorResult<Uint8Array>,
    private readonly rest: AsyncIterator<Uint8Array>,
    private readonly parts: AnswerBodyParts,
  ) {
    this.#first = first;
    if (first.done === true) this.#end();
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#isOver) return { done: true, value: undefined };
    const first = this.#first;
    this.#first = null;
    if (first !== null) return first;
    const cancel = this.parts.whenIdle();
    try {
      const read = await this.rest.next();
      if (read.done === true) this.#end();
      return read;
    } catch (error) {
      this.#end();
      throw this.parts.errorFor(error);
    } finally {
      cancel();
    }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#isOver) {
      this.#end();
      this.parts.destroy();
    }
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #end(): void {
    this.#isOver = true;
    this.parts.release();
  }
}

/** Names are in lower case; a name may occur more than once. */
export type HeaderPair = readonly [name: string, value: string];

export function headerPairs(raw: readonly string[]): HeaderPair[] {
  return Array.from({ length: raw.length / 2 }, (_, at) => [(raw[2 * at] ?? "").toLowerCase(), raw[2 * at + 1] ?? ""]);
}

/** Hop-by-hop headers (RFC 9110, 7.6.1), and those of the body's length. */
const OF_THE_CONNECTION = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Not sent to the engine, and dropped from its answers. */
const OWN_PREFIX = "x-memprefix-";

export function passedOn(headers: Iterable<HeaderPair>): HeaderPair[] {
  const pairs = [...headers].map(([name, value]): HeaderPair => [name.toLowerCase(), value]);
  const named = pairs
    .filter(([name]) => name === "connection")
    .flatMap(([, value]) => value.split(",").map((name) => name.trim().toLowerCase()));
  const dropped = new Set([...OF_THE_CONNECTION, ...named]);
  return pairs.filter(([name]) => !dropped.has(name) && !name.startsWith(OWN_PREFIX));
}

export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "api-key",
  "apikey",
  "x-goog-api-key",
  "ocp-apim-subscription-key",
  "x-auth-token",
  "x-access-token",
  "cookie",
]);

export function credentialsIn(headers: readonly HeaderPair[]): HeaderPair[] {
  return headers.filter(([name]) => CREDENTIAL_HEADERS.has(name.toLowerCase()));
}

/** Headers that identify one request: a provider would repeat its first answer for a second request with the same id. */
const NAMING_A_REQUEST: ReadonlySet<string> = new Set(["x-request-id", "idempotency-key"]);

export function forAnotherRequest(headers: readonly HeaderPair[]): HeaderPair[] {
  return headers.filter(([name]) => !NAMING_A_REQUEST.has(name.toLowerCase()));
}

/** A client's headers, and memprefix's that the client did not set itself. */
export function withAdded(own: readonly HeaderPair[], added: Readonly<Record<string, string>>): HeaderPair[] {
  const named = new Set(own.map(([name]) => name.toLowerCase()));
  return [...own, ...Object.entries(added).filter(([name]) => !named.has(name.toLowerCase()))];
}

/** Names memprefix in the engine's logs. */
export const OWN_NAME: HeaderPair = ["user-agent", "memprefix"];
