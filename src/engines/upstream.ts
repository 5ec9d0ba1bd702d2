import { type ClientRequest, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { urlToHttpOptions } from "node:url";
import { type HeaderPair, headerPairs, passedOn } from "./upstream-headers.js";

/** Why an engine gave no answer, or only the beginning of one. */
export type UpstreamFailure =
  | { readonly kind: "unreachable"; readonly cause: string }
  | { readonly kind: "timeout"; readonly afterMs: number }
  /** The connection ended before the answer did. */
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
    case "broken":
      return `the upstream engine at ${upstream} broke off its answer: ${failure.cause}`;
    case "aborted":
      return `the upstream engine at ${upstream} was not waited for any longer`;
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
}

/** Opens nothing yet: a connection is made with the first call, and kept for later ones. */
export function openUpstream({ url, apiKey, timeoutMs }: UpstreamOptions): Upstream {
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
    let failure: UpstreamFailure | null = null;
    const attempt = openRequest(knownTargetOf(call), call, apiKey);
    const stop = (why: UpstreamFailure) => {
      failure ??= why;
      attempt.destroy();
    };
    const abandon = () => stop({ kind: "aborted" });
    signal.addEventListener("abort", abandon, { once: true });
    const timer = setTimeout(() => stop({ kind: "timeout", afterMs: timeoutMs }), timeoutMs);
    try {
      const response = await responseTo(attempt, call.body);
      const bytes: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]();
      const first = await bytes.next();
      clearTimeout(timer);
      return {
        status: response.statusCode ?? 502,
        headers: passedOn(headerPairs(response.rawHeaders)),
        body: bodyOf(first, bytes, {
          errorFor: (error) => new UpstreamError(name, failure ?? { kind: "broken", cause: causeOf(error) }),
          end: () => signal.removeEventListener("abort", abandon),
        }),
      };
    } catch (error) {
      clearTimeout(timer);
      signal.removeEventListener("abort", abandon);
      const stale = failure === null && attempt.reusedSocket && causeOf(error) === "ECONNRESET";
      // A kept connection that the engine closed just then; a completion changes nothing there, so it may be asked for again.
      if (stale) return send(call, signal);
      throw new UpstreamError(name, failure ?? { kind: "unreachable", cause: causeOf(error) });
    }
  };
  return { name, send };
}

function openRequest(
  target: RequestOptions,
  { method, headers, body }: UpstreamCall,
  apiKey: string | undefined,
): ClientRequest {
  const sent: Record<string, string | string[]> = {};
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

function responseTo(request: ClientRequest, body: string | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    // Stays: a later error is the body's too, and is told there.
    request.on("error", reject);
    request.end(body ?? undefined);
  });
}

async function* bodyOf(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
  { errorFor, end }: { readonly errorFor: (error: unknown) => UpstreamError; readonly end: () => void },
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (let read = first; !read.done; read = await rest.next()) yield read.value;
  } catch (error) {
    throw errorFor(error);
  } finally {
    end();
    await rest.return?.();
  }
}

/** A system error's code, which holds nothing of what was sent. */
function causeOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return error instanceof Error ? error.name : "unknown";
}
