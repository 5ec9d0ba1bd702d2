import { z } from "zod";
import { withoutFilePaths } from "../core/text/file-paths.js";
import { parsedJson, record } from "../core/text/json.js";
import { memoryTextProblem } from "../core/text/memory-text.js";
import { joinedSentences, sentenceIn } from "../core/text/sentence.js";
import { MemorySourceError } from "./memory-source.js";

/** Other characters would make `fetch` throw an error that quotes the key. Messages here never do. */
const apiKey = z.string().regex(/^[!-~]+$/, "must be printable ASCII without spaces");

const url = z
  .url({ protocol: /^https?$/, error: "must be an absolute http or https URL" })
  .refine((text) => {
    const { username, password, search, hash } = new URL(text);
    return `${username}${password}${search}${hash}` === "";
  }, "must have no credentials, query or fragment")
  .transform((text) => text.replace(/\/+$/, ""));

const service = z.object({ url, apiKey: apiKey.optional() });
export type Mem0Service = z.output<typeof service>;

/** Throws a `TypeError` that names the invalid setting and quotes none. */
export function checkedService(settings: z.input<typeof service>): Mem0Service {
  const checked = service.safeParse(settings);
  if (checked.success) return checked.data;
  throw new TypeError(checked.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
}

/** Throws {@link MemorySourceError} `unsupported` for a text that cannot be a memory. */
export function checkMemoryText(source: string, text: string): void {
  const problem = memoryTextProblem(text);
  if (problem !== null) {
    throw new MemorySourceError(source, { kind: "unsupported", operation: `keep a memory: its text ${problem}` });
  }
}

/** After decompression. A thousand memories are about 1 MiB. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

const REFUSAL_CHARACTERS = 500;

interface JsonRequest {
  readonly source: string;
  readonly url: string;
  readonly method: "GET" | "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** Removed from everything that an error carries. */
  readonly secret?: string | undefined;
}

/** Calls of a service at paths under its URL. @param keyed the headers that carry its key */
export function jsonCalls(source: string, { url, apiKey }: Mem0Service, keyed: Readonly<Record<string, string>>) {
  return (method: JsonRequest["method"], path: string, signal: AbortSignal, body?: unknown): Promise<unknown> => {
    const typed: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    const headers = { accept: "application/json", ...typed, ...keyed };
    return requestJson({
      source,
      url: `${url}${path}`,
      method,
      headers,
      signal,
      body: JSON.stringify(body),
      secret: apiKey,
    });
  };
}

/**
 * Returns the answer's JSON, null for an empty body. Rejects with {@link MemorySourceError} only: `aborted`; `unreachable` without a whole
 * answer; `refused` for any status but 2xx, also a redirect that would carry the key elsewhere; `unreadable` for invalid JSON or more than 16 MiB.
 */
async function requestJson(request: JsonRequest): Promise<unknown> {
  const response = await answerTo(request);
  const body = await textOf(response, request);
  if (!response.ok) {
    const { status } = response;
    const kept = withoutSecret(body.slice(0, REFUSAL_CHARACTERS), request);
    const said = refusalSentence(body, request.body, request.secret);
    const keyless = request.secret === undefined && (status === 401 || status === 403) ? "no API key was sent" : null;
    const says = [said, keyless].filter((text) => text !== null).join("; ");
    const retryAfterMs = retryAfterIn(response.headers.get("retry-after"));
    throw new MemorySourceError(request.source, {
      kind: "refused",
      status,
      body: kept,
      says: says || null,
      retryAfterMs,
    });
  }
  if (body.trim() === "") return null;
  const json = parsedJson(body);
  if (json !== undefined) return json;
  const type = response.headers.get("content-type") ?? "no content type";
  throw unreadable(request, `not JSON (${type}, status ${response.status})`);
}

async function answerTo(request: JsonRequest): Promise<Response> {
  const { url, method, headers, body = null, signal } = request;
  const sent = { method, headers, signal, redirect: "manual", body } as const;
  try {
    const response = await fetch(url, sent);
    const target = redirectedWithin(url, response);
    if (target === null) return response;
    await response.body?.cancel();
    return await fetch(target, sent);
  } catch (error) {
    throw brokenOff(request, error);
  }
}

/** Where a redirect that keeps method and body (RFC 9110 §15.4.8, as FastAPI's for a slash) leads on the same server; null: it does not. */
function redirectedWithin(url: string, { status, headers }: Response): URL | null {
  const location = status === 307 || status === 308 ? headers.get("location") : null;
  const target = location === null || !URL.canParse(location, url) ? null : new URL(location, url);
  return target?.origin === new URL(url).origin && target.username === "" && target.password === "" ? target : null;
}

/** Milliseconds of a `Retry-After`: seconds, or a date (RFC 9110 §10.2.3); null where there is none. */
function retryAfterIn(header: string | null): number | null {
  if (header === null) return null;
  const ms = /^\s*\d+\s*$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

async function textOf(response: Response, request: JsonRequest): Promise<string> {
  const chunks: Uint8Array[] = [];
  const announced = Number(response.headers.get("content-length") ?? 0);
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

/** undici says "fetch failed" and keeps the reason in `cause`, which has a code (`ECONNREFUSED`) for network errors. */
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

export function isNotFound(error: unknown): boolean {
  return error instanceof MemorySourceError && error.failure.kind === "refused" && error.failure.status === 404;
}

/** Whether an id can be a path segment. `encodeURIComponent` keeps dots: `/memories/..` would be `/`, and `/memories/` all memories. */
export function isPathSegment(id: string): boolean {
  return id !== "" && id !== "." && id !== "..";
}

const MAX_BODY_CHARACTERS = 64 * 1024;
const MAX_SENTENCE_CHARACTERS = 300;
/** Shorter texts do not count as quotations: single words identify nobody. */
const LEAST_QUOTED_CHARACTERS = 8;

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:sk|pk|rk|m0|mem0|memprefix|gsk|xai|hf|ghp|AKIA|AIza)[-_]?[\w*-]{6,}/gi, "***"],
  [/\b(bearer|basic|token)\s+[\w.~+/=-]{6,}/gi, "$1 ***"],
  [/:\/\/[^\s/@]+@/g, "://***@"],
  [/\b(api[-_ ]?key|password|passwd|secret|token|authorization)(["']?\s*[=:]\s*["']?)[^\s"',;}]+/gi, "$1$2***"],
  [/\beyJ[\w-]+\.[\w.-]+/g, "***"],
  [/\b(?=\w*\d)(?=\w*[a-z])\w{32,}\b/gi, "***"],
];

/** Why a service rejected a request, as one line without file paths, likely secrets, and the texts that were `sent`. Null: no sentence. */
function refusalSentence(body: string, sent: string | undefined, secret: string | undefined): string | null {
  if (body.length > MAX_BODY_CHARACTERS) return null;
  const said = saidIn(body);
  if (said === null) return null;
  const known = secret === undefined ? said : said.replaceAll(secret, "***");
  const unquoted = textsIn(sent).reduce((text, quoted) => text.replaceAll(quoted, "…"), known);
  const masked = SECRETS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), unquoted);
  const line = withoutFilePaths(masked)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();
  if (line === "") return null;
  return line.length <= MAX_SENTENCE_CHARACTERS ? line : `${line.slice(0, MAX_SENTENCE_CHARACTERS - 1).trimEnd()}…`;
}

function saidIn(body: string): string | null {
  const json = parsedJson(body);
  if (json !== undefined) return sentenceIn(json) ?? namedFields(json);
  // HTML and JSON are no sentence, nor is a long text.
  return body.length > MAX_SENTENCE_CHARACTERS || /^\s*[<{[]/.test(body) ? null : body;
}

/** Django names fields, at the top. */
function namedFields(json: unknown): string | null {
  const fields = Array.isArray(json) ? [] : Object.entries(record(json));
  return joinedSentences(fields.map(([name, texts]) => (areTexts(texts) ? `${name}: ${texts.join(" ")}` : null)));
}

function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === "string");
}

function textsIn(sent: string | undefined): readonly string[] {
  if (sent === undefined) return [];
  const { query, messages } = z
    .looseObject({
      query: z.string().optional().catch(undefined),
      messages: z.array(z.looseObject({ content: z.string() })).catch([]),
    })
    .catch({ messages: [] })
    .parse(parsedJson(sent));
  return [...(query === undefined ? [] : [query]), ...messages.map(({ content }) => content)]
    .filter(({ length }) => length >= LEAST_QUOTED_CHARACTERS)
    .sort((a, b) => b.length - a.length);
}
