import { z } from "zod";
import { withoutFilePaths } from "../core/text/file-paths.js";
import { parsedJson, record } from "../core/text/json.js";
import { memoryTextProblem } from "../core/text/memory-text.js";
import { joinedSentences, sentenceIn } from "../core/text/sentence.js";
import { MemorySourceError } from "./memory-source.js";

/**
 * A key goes into a header: anything but printable ASCII would make `fetch` throw an error that quotes it. Messages here never do.
 */
const apiKey = z.string().regex(/^[!-~]+$/, "must be printable ASCII without spaces");

const url = z
  .url({ protocol: /^https?$/, error: "must be an absolute http or https URL" })
  .refine((text) => {
    const { username, password, search, hash } = new URL(text);
    return `${username}${password}${search}${hash}` === "";
  }, "must have no credentials, query or fragment")
  .transform((text) => text.replace(/\/+$/, ""));

const service = z.object({ url, apiKey: apiKey.optional() });
/** How to reach a Mem0 service: its root without a slash at the end, and its key. */
export type Mem0Service = z.output<typeof service>;

/** Checks how a Mem0 service is configured; throws a `TypeError` that says which setting is wrong and quotes none of them. */
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
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** Taken out of everything that an error carries. */
  readonly secret?: string | undefined;
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
  const json = parsedJson(body);
  if (json !== undefined) return json;
  const type = response.headers.get("content-type") ?? "no content type";
  throw unreadable(request, `not JSON (${type}, status ${response.status})`);
}

async function answerTo(request: JsonRequest): Promise<Response> {
  const { url, method, headers, body = null, signal } = request;
  try {
    return await fetch(url, { method, headers, signal, redirect: "manual", body });
  } catch (error) {
    throw brokenOff(request, error);
  }
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

/** Largest body that is read for a sentence. */
const MAX_BODY_CHARACTERS = 64 * 1024;
/** Longest sentence that is passed on. */
const MAX_SENTENCE_CHARACTERS = 300;
/** Shortest text of a request that counts as a quotation: single words say nothing of anybody. */
const LEAST_QUOTED_CHARACTERS = 8;

/** What looks like a key or a password, whosever it is: prefixed keys, bearer tokens, credentials in URLs, `key=…`. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:sk|pk|rk|m0|mem0|memprefix|gsk|xai|hf|ghp|AKIA|AIza)[-_]?[\w*-]{6,}/gi, "***"],
  [/\b(bearer|basic|token)\s+[\w.~+/=-]{6,}/gi, "$1 ***"],
  [/:\/\/[^\s/@]+@/g, "://***@"],
  [/\b(api[-_ ]?key|password|passwd|secret|token|authorization)(["']?\s*[=:]\s*["']?)[^\s"',;}]+/gi, "$1$2***"],
  [/\beyJ[\w-]+\.[\w.-]+/g, "***"],
  [/\b(?=\w*\d)(?=\w*[a-z])\w{32,}\b/gi, "***"],
];

/**
 * What a memory service says of a request that it refused, as one line; null where its body has no sentence. Bounded; without control
 * characters, file paths, what looks like a secret, and the texts that it was sent.
 *
 * @param sent the request's body, whose texts are not quoted
 */
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
  // Pages say nothing, and what is longer is no sentence.
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

/** The query and the texts of messages, longest first. */
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
