import { MemorySourceError } from "./memory-source.js";
import { refusalSentence } from "./refusal-sentence.js";

/** Most bytes of an answer, after decompression: a thousand memories are about 1 MiB. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Characters of a refusal's body that are kept: enough for a reason, little enough for a log line. */
const REFUSAL_CHARACTERS = 500;

/** One request to a memory service. */
export interface JsonRequest {
  /** The memory source's name, for errors. */
  readonly source: string;
  readonly url: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as it is; already JSON. */
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Taken out of everything that an error carries. */
  readonly secret?: string;
}

/**
 * Sends a request and gives back the answer's JSON, null for an empty body. Rejects with {@link MemorySourceError} only: `aborted`;
 * `unreachable` where no whole answer came; `refused` for any status other than 2xx (redirects too: following one would carry the key
 * to wherever it points); `unreadable` for what is not JSON or is larger than 16 MiB.
 */
export async function requestJson(request: JsonRequest): Promise<unknown> {
  const response = await answerTo(request);
  const body = await textOf(response, request);
  if (!response.ok) {
    const { status } = response;
    const kept = withoutSecret(body.slice(0, REFUSAL_CHARACTERS), request);
    const said = refusalSentence(body, request.body, request.secret);
    const keyless = request.secret === undefined && (status === 401 || status === 403) ? "no API key was sent" : null;
    const says = [said, keyless].filter((text) => text !== null).join("; ");
    throw new MemorySourceError(request.source, { kind: "refused", status, body: kept, says: says || null });
  }
  if (body.trim() === "") return null;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    // The parser's own message quotes the body, which holds memories.
    const type = response.headers.get("content-type") ?? "no content type";
    throw unreadable(request, `not JSON (${type}, status ${response.status})`);
  }
}

async function answerTo(request: JsonRequest): Promise<Response> {
  const { url, method, headers, body, signal } = request;
  try {
    return await fetch(url, { method, headers, signal, redirect: "manual", ...(body === undefined ? {} : { body }) });
  } catch (error) {
    throw brokenOff(request, error);
  }
}

async function textOf(response: Response, request: JsonRequest): Promise<string> {
  const announced = Number(response.headers.get("content-length") ?? 0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    if (announced > MAX_BODY_BYTES) await response.body?.cancel();
    else if (response.body !== null) {
      for await (const chunk of response.body) {
        size += chunk.byteLength;
        // Leaving the loop cancels the stream.
        if (size > MAX_BODY_BYTES) break;
        chunks.push(chunk);
      }
    }
  } catch (error) {
    throw brokenOff(request, error);
  }
  if (Math.max(announced, size) > MAX_BODY_BYTES) throw unreadable(request, `more than ${MAX_BODY_BYTES} bytes`);
  return new TextDecoder().decode(Buffer.concat(chunks));
}

function brokenOff(request: JsonRequest, error: unknown): MemorySourceError {
  if (request.signal.aborted) return new MemorySourceError(request.source, { kind: "aborted" });
  return new MemorySourceError(request.source, {
    kind: "unreachable",
    cause: withoutSecret(reasonOf(error), request),
  });
}

/** undici says "fetch failed" and keeps the reason in `cause`, which has a code (`ECONNREFUSED`) where the network is at fault. */
function reasonOf(error: unknown): string {
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(reason instanceof Error)) return "the request failed";
  return "code" in reason && typeof reason.code === "string" ? reason.code : reason.message;
}

function unreadable(request: JsonRequest, cause: string): MemorySourceError {
  return new MemorySourceError(request.source, { kind: "unreadable", cause: withoutSecret(cause, request) });
}

function withoutSecret(text: string, { secret }: JsonRequest): string {
  return secret === undefined ? text : text.replaceAll(secret, "***");
}

/** Whether a service said that there is no such thing (404), rather than that something is wrong. */
export function isNotFound(error: unknown): boolean {
  return error instanceof MemorySourceError && error.failure.kind === "refused" && error.failure.status === 404;
}

/**
 * Whether an id can be a segment of a URL's path: `encodeURIComponent` leaves dots alone, so that `/memories/..` would be `/`, and
 * `/memories/` all memories.
 */
export function isPathSegment(id: string): boolean {
  return id !== "" && id !== "." && id !== "..";
}
