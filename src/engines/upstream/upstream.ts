/*
 * upstream/: the connection to an engine, and what its answers say, whatever the engine's family.
 * In: a call of OpenAI's API (path, headers, JSON body) with an abort signal; for the readers, an answer's bytes.
 * Out: the answer, unmodified and byte by byte (`Upstream`), or an `UpstreamError`; its server-sent events; its first token's log
 * probabilities; why an engine refused a prompt (`PromptRefusal`).
 * Knows no engine family and no memories: what is sent is made in `adapters/`.
 */

import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { urlToHttpOptions } from "node:url";
import { type HeaderPair, headerPairs, passedOn } from "./upstream-headers.js";

/** Why an engine gave no answer, or only the beginning of one. */
export type UpstreamFailure =
  | { readonly kind: "unreachable"; readonly cause: string }
  | { readonly kind: "timeout"; readonly afterMs: number }
  /** It began to answer, and then sent nothing for so long. */
  | { readonly kind: "stalled"; readonly afterMs: number }
  /** The connection ended before the answer did, or what came is no answer. */
  | { readonly kind: "broken"; readonly cause: string }
  /** The caller's own signal aborted. */
  | { readonly kind: "aborted" };

/** A call to an engine failed before or while it answered. The message names the engine and is safe to show (no prompt, no key). */
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
      return `the upstream engine at ${upstream} could not be reached: ${failure.cause}`;
    case "timeout":
      return `the upstream engine at ${upstream} did not begin to answer within ${failure.afterMs} ms`;
    case "stalled":
      return `the upstream engine at ${upstream} stalled: it sent nothing for ${failure.afterMs} ms in the middle of its answer`;
    case "broken":
      return `the upstream engine at ${upstream} broke off its answer: ${failure.cause}`;
    case "aborted":
      return `the upstream engine at ${upstream} was called and the caller aborted`;
  }
}

/** One call to an OpenAI-compatible API. */
export interface UpstreamCall {
  readonly method: "GET" | "POST";
  /** Behind the API's base URL: `chat/completions`. */
  readonly path: string;
  /** The client's query string, `?` included, or empty. */
  readonly query: string;
  /** The client's; what is the connection's own or memstem's does not go on. */
  readonly headers: Iterable<HeaderPair>;
  /** JSON, or null for none. */
  readonly body: string | null;
}

/** What an engine answered, whatever its status; the body as it comes, byte for byte. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: readonly HeaderPair[];
  /** To be read once. Ending it early closes the connection. Throws {@link UpstreamError}. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** An engine behind an OpenAI-compatible API. */
export interface Upstream {
  /** Its address, without credentials. */
  readonly name: string;
  /**
   * Sends a call; resolves with the first byte of the answer. Rejects with {@link UpstreamError} and nothing else; a status of 400 and
   * above is an answer. `signal` closes the connection, also while the body is read.
   */
  send(call: UpstreamCall, signal: AbortSignal): Promise<UpstreamAnswer>;
}

export interface UpstreamOptions {
  /** Base URL, as OpenAI's clients take it: `http://127.0.0.1:8000/v1`. */
  readonly url: string;
  /** Goes as a bearer token in place of the client's own `authorization`. */
  readonly apiKey?: string | undefined;
  /** Milliseconds that the first byte of an answer may take. */
  readonly timeoutMs: number;
  /** Milliseconds that each further one may take, while it is waited for. Default: as long as the first. */
  readonly idleMs?: number | undefined;
}

const RESET_CONTENT = 205;

/** Opens nothing yet: a connection is made with the first call, and kept for later ones. */
export function openUpstream({ url, apiKey, timeoutMs, idleMs = timeoutMs }: UpstreamOptions): Upstream {
  const base = new URL(url);
  const name = `${base.origin}${base.pathname.replace(/\/+$/, "")}`;
  const targetOf = ({ path, query }: UpstreamCall) => {
    const target = new URL(base);
    target.pathname = `${base.pathname.replace(/\/+$/, "")}/${path}`;
    for (const [field, value] of new URLSearchParams(query)) target.searchParams.append(field, value);
    return urlToHttpOptions(target);
  };
  /** Of calls without a query, by path, of which there are two. */
  const known = new Map<string, RequestOptions>();
  const knownTargetOf = (call: UpstreamCall) => {
    if (call.query !== "") return targetOf(call);
    const target = known.get(call.path) ?? targetOf(call);
    known.set(call.path, target);
    return target;
  };
  const send: Upstream["send"] = async (call, signal) => {
    if (signal.aborted) throw new UpstreamError(name, { kind: "aborted" });
    const attempt = openRequest(knownTargetOf(call), call, apiKey);
    let failure: UpstreamFailure | null = null;
    const stop = (why: UpstreamFailure) => {
      failure ??= why;
      attempt.destroy();
    };
    const abandon = () => stop({ kind: "aborted" });
    signal.addEventListener("abort", abandon, { once: true });
    const release = () => signal.removeEventListener("abort", abandon);
    const timer = setTimeout(() => stop({ kind: "timeout", afterMs: timeoutMs }), timeoutMs);
    let response: IncomingMessage | null = null;
    try {
      response = await responseTo(attempt, call.body);
      const rest: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]();
      // This status has no content (RFC 9110 §15.3.6), whatever is sent.
      if (response.statusCode === RESET_CONTENT) attempt.destroy();
      const first: IteratorResult<Uint8Array> =
        response.statusCode === RESET_CONTENT ? { done: true, value: undefined } : await rest.next();
      const body = new AnswerBody(first, rest, {
        idleMs,
        onStalled: () => stop({ kind: "stalled", afterMs: idleMs }),
        errorFor: (error) => new UpstreamError(name, failure ?? { kind: "broken", cause: causeOf(error) }),
        release,
        destroy: () => attempt.destroy(),
      });
      return { status: response.statusCode ?? 502, headers: passedOn(headerPairs(response.rawHeaders)), body };
    } catch (error) {
      release();
      const cause = causeOf(error);
      const stale = failure === null && response === null && attempt.reusedSocket && cause === "ECONNRESET";
      // A kept connection that the engine closed just then; a completion changes nothing there, so it may be asked for again.
      if (stale) return send(call, signal);
      const wasReached = response !== null || error instanceof NoAnswerError || cause.startsWith("HPE_");
      throw new UpstreamError(name, failure ?? { kind: wasReached ? "broken" : "unreachable", cause });
    } finally {
      clearTimeout(timer);
    }
  };
  return { name, send };
}

function openRequest(
  target: RequestOptions,
  { method, headers, body }: UpstreamCall,
  apiKey: string | undefined,
): ClientRequest {
  // Without a prototype: a client may call a header `constructor`, or `__proto__`.
  const sent: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of passedOn(headers)) sent[name] = [...[sent[name] ?? []].flat(), value];
  // Bytes go through as they come and are read on the way, so they come plain.
  sent["accept-encoding"] = "identity";
  if (apiKey !== undefined) sent["authorization"] = `Bearer ${apiKey}`;
  if (body === null) delete sent["content-type"];
  else {
    sent["content-type"] ??= "application/json";
    sent["content-length"] = String(Buffer.byteLength(body));
  }
  return (target.protocol === "https:" ? httpsRequest : httpRequest)({ ...target, method, headers: sent });
}

/** What came is no HTTP answer to the request. */
class NoAnswerError extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

/** Settles however the connection ends: an answer, another protocol, an error, or nothing at all. */
function responseTo(request: ClientRequest, body: string | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", (response) => {
      // A final answer's status is none of these; Node takes a 101 that names no protocol for one.
      if ((response.statusCode ?? 0) >= 200) return resolve(response);
      request.destroy();
      return reject(new NoAnswerError("SWITCHED_PROTOCOLS"));
    });
    // Nobody asked for another protocol. Node hands the connection over, so it is ours to close.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new NoAnswerError("SWITCHED_PROTOCOLS"));
    });
    // Stays: a later error is the body's too, and is told there.
    request.on("error", reject);
    // Behind all of these.
    request.once("close", () => reject(new NoAnswerError("CLOSED")));
    request.end(body ?? undefined);
  });
}

/** A system error's code, which holds nothing of what was sent. */
function causeOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return error instanceof Error ? error.name : "unknown";
}

/** What an answer's body needs of the call that it belongs to. */
interface AnswerBodyParts {
  /** Milliseconds that may pass while bytes are waited for. A reader that does not ask for any is not the engine's fault. */
  readonly idleMs: number;
  /** Called when that is over. */
  readonly onStalled: () => void;
  /** What is thrown in place of the connection's own error. */
  readonly errorFor: (error: unknown) => Error;
  /** Called once it is over, however it ended. */
  readonly release: () => void;
  /** Closes the connection. */
  readonly destroy: () => void;
}

/** An answer's bytes, as they come. No generator: ended before its first byte was read, it must close the connection all the same. */
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
    const timer = setTimeout(this.parts.onStalled, this.parts.idleMs);
    try {
      const read = await this.rest.next();
      if (read.done === true) this.#end();
      return read;
    } catch (error) {
      this.#end();
      throw this.parts.errorFor(error);
    } finally {
      clearTimeout(timer);
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
