import {
  DeletedMeanwhileError,
  InvalidRequestError,
  MemorySourceError,
  MemprefixConnectionError,
  MemprefixHttpError,
  MemprefixTimeoutError,
  NotFoundError,
  type Problem,
  type Refusal,
} from "./errors.js";
import type { Route } from "./routes.js";
import { camelField, type UnmodifiedPaths } from "./wire-names.js";

/** One request, as it goes over the wire. */
export interface Outgoing {
  readonly route: Route;
  /** With its `?`; empty: none. */
  readonly query?: string;
  /** JSON or lines of it; a stream can be sent once only. */
  readonly body?: { readonly type: string; readonly content: string | ReadableStream<Uint8Array> };
  /** A status other than success that is an answer too. */
  readonly alsoAnswered?: number;
}

/** One try: its time-out and the caller's signal, as one signal. */
export interface Try {
  readonly signal: AbortSignal;
  /** Ends the time-out until it is started again: something came, and its reader has it. */
  hold(): void;
  /** Starts the time-out again: the next part is awaited. */
  touch(): void;
  /** Ends the time-out. */
  stop(): void;
  /** Ends the exchange too, as far as it still goes on: what was to be sent, and what was to come. */
  cancel(): void;
  /** What to say of an error while the try lasted. */
  named(error: unknown): unknown;
}

const BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 8_000;
/** A service that requests a longer wait than this is not waited for. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Sends a request, again where it failed and that is safe, and reads its answer. `read` stops the try; until it does, the time-out runs.
 */
export async function send<T>(
  connection: Connection,
  outgoing: Outgoing,
  call: CallControl,
  read: (response: Response, current: Try) => Promise<T>,
): Promise<T> {
  const { timeoutMs = connection.timeoutMs, retries = connection.retries } = call;
  limitsOf({ timeoutMs, retries });
  for (let failed = 0; ; failed++) {
    call.signal?.throwIfAborted();
    const current = startTry(whatOf(outgoing), timeoutMs, call.signal);
    let failure: unknown;
    try {
      const response = await connection.fetch(`${connection.base}${outgoing.route.path}${outgoing.query ?? ""}`, {
        method: outgoing.route.method,
        headers: headersOf(connection, outgoing),
        signal: current.signal,
        ...(outgoing.body === undefined ? {} : bodyOf(outgoing.body.content)),
      });
      if (response.ok || response.status === outgoing.alsoAnswered) return await read(response, current);
      failure = await refusalOf(response, whatOf(outgoing), outgoing.route.unmodified);
    } catch (error) {
      failure = current.named(error);
    }
    current.stop();
    if (call.signal?.aborted || failed >= retries || !mayRetry(failure, outgoing)) throw failure;
    await pause(retryDelayMs(failed, waitedFor(failure), Math.random()), call.signal);
  }
}

/** What a request is called in errors. */
export function whatOf({ route }: Outgoing): string {
  return `${route.method} ${route.path}`;
}

/** Milliseconds to wait before the next try: doubled with each that failed, at random so that clients do not come back together. */
export function retryDelayMs(failed: number, retryAfter: number | null, random: number): number {
  const backoff = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failed);
  return retryAfter === null ? backoff * (0.5 + random / 2) : retryAfter + (backoff * random) / 2;
}

function mayRetry(failure: unknown, { route, body }: Outgoing): boolean {
  if (body !== undefined && typeof body.content !== "string") return false;
  if (failure instanceof MemprefixConnectionError) return route.retried === "all";
  if (!(failure instanceof MemprefixHttpError) || (failure.retryAfterMs ?? 0) > MAX_RETRY_AFTER_MS) return false;
  if (failure.status === 429) return true;
  return route.retried === "all" && [502, 503, 504].includes(failure.status ?? 0);
}

function waitedFor(failure: unknown): number | null {
  return failure instanceof MemprefixHttpError ? failure.retryAfterMs : null;
}

function headersOf({ headers }: Connection, { body }: Outgoing): Readonly<Record<string, string>> {
  return body === undefined ? headers : { ...headers, "content-type": body.type };
}

function bodyOf(content: string | ReadableStream<Uint8Array>): RequestInit {
  // A streamed body has to be announced (Fetch, "duplex").
  return typeof content === "string" ? { body: content } : ({ body: content, duplex: "half" } as RequestInit);
}

function startTry(what: string, timeoutMs: number, signal: AbortSignal | undefined): Try {
  const controller = new AbortController();
  const cancel = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", cancel, { once: true });
  const expire = () => controller.abort(new MemprefixTimeoutError(what, timeoutMs));
  const start = () => (timeoutMs === 0 ? undefined : setTimeout(expire, timeoutMs));
  let timer = start();
  const stop = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", cancel);
  };
  return {
    signal: controller.signal,
    hold: () => clearTimeout(timer),
    touch() {
      clearTimeout(timer);
      timer = start();
    },
    stop,
    cancel() {
      stop();
      controller.abort();
    },
    named(error) {
      if (controller.signal.aborted) return controller.signal.reason;
      if (error instanceof MemprefixHttpError || error instanceof MemprefixConnectionError) return error;
      return new MemprefixConnectionError(`${what} had no whole answer: ${wordsOf(error)}`, { cause: error });
    },
  };
}

/** Runtimes say `fetch failed` and put why into the cause. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== "" ? error.cause.message : error.message;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", cancel);
      resolve();
    }, ms);
    signal?.addEventListener("abort", cancel, { once: true });
  });
}

/** The error for an answer other than success. Reads the body. */
async function refusalOf(response: Response, what: string, unmodified: UnmodifiedPaths): Promise<MemprefixHttpError> {
  const text = await response.text();
  const problem = problemIn(text, unmodified);
  const { status } = response;
  const refusal = { status, problem, retryAfterMs: retryAfterMs(response.headers.get("retry-after"), Date.now()) };
  if (problem === null) {
    const kind = response.headers.get("content-type") ?? "no content type";
    return new MemprefixHttpError(
      `${what} was answered ${status} (${kind}), which is no problem of memprefix's`,
      refusal,
    );
  }
  return errorFor(problem, refusal, what);
}

/** As the service's table of problems has them (`src/http/problems/problem.ts`), read the other way. */
function errorFor(problem: Problem, refusal: Refusal, what: string): MemprefixHttpError {
  const { status, detail = problem.title, errors = [] } = problem;
  const [first] = errors;
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      if (first !== undefined) return new InvalidRequestError(errors, refusal);
      break;
    case 404:
      if (first !== undefined) return new NotFoundError(first.field, detail, refusal);
      break;
    case 409:
      return new DeletedMeanwhileError(detail, refusal);
    case 501:
    case 502:
    case 504:
      return new MemorySourceError(detail, refusal);
    default:
  }
  return new MemprefixHttpError(`${what} was answered ${status}: ${detail}`, refusal);
}

function problemIn(text: string, unmodified: UnmodifiedPaths): Problem | null {
  try {
    return readProblem(JSON.parse(text), unmodified);
  } catch {
    return null;
  }
}

/** A problem's JSON, with its fields named as the caller names them; null where it is none. */
export function readProblem(json: unknown, unmodified: UnmodifiedPaths): Problem | null {
  if (!isProblem(json)) return null;
  const { type, title, status, detail, errors } = json;
  const said = errors?.map(({ field, message }) => ({ field: camelField(field, unmodified), message }));
  return {
    type,
    title,
    status,
    ...(detail === undefined ? {} : { detail }),
    ...(said === undefined ? {} : { errors: said }),
  };
}

function isProblem(json: unknown): json is Problem {
  if (typeof json !== "object" || json === null) return false;
  const { title, status, detail, errors } = json as Partial<Record<keyof Problem, unknown>>;
  if (typeof title !== "string" || typeof status !== "number") return false;
  if (detail !== undefined && typeof detail !== "string") return false;
  return errors === undefined || (Array.isArray(errors) && errors.every(isIssue));
}

function isIssue(value: unknown): boolean {
  const { field, message } = (value ?? {}) as { readonly field?: unknown; readonly message?: unknown };
  return typeof field === "string" && typeof message === "string";
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110, section 10.2.3); null where it says neither. */
export function retryAfterMs(header: string | null, now: number): number | null {
  if (header === null) return null;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

/** How a client reaches its service. */
export interface ClientOptions {
  /** Where the service is, as `http://127.0.0.1:4600`; a path before its routes may follow. */
  readonly url: string;
  /** Sent as a bearer token. Default: none, for a service without keys. */
  readonly apiKey?: string | undefined;
  /**
   * Longest wait for an answer, for each try, in milliseconds; of a batch, which is streamed, for its next part. Default: 30,000; 0: no limit.
   */
  readonly timeoutMs?: number | undefined;
  /** Most further tries of a call that failed and that does the same if it is sent twice. Default: 2. */
  readonly retries?: number | undefined;
  /** Default: the runtime's own. */
  readonly fetch?: typeof fetch | undefined;
  /** Further headers of every request, as a gateway may need them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** What holds for one call in place of the client's own. */
export interface CallControl {
  /** Ends the call: it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly retries?: number | undefined;
}

/** {@link ClientOptions}, checked. */
export interface Connection {
  /** Without a slash at its end. */
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly fetch: typeof fetch;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 2;
/** The longest that timers of JavaScript can wait. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const MAX_RETRIES = 10;

const KNOWN: ReadonlySet<string> = new Set<keyof ClientOptions>([
  ...(["url", "apiKey", "timeoutMs", "retries", "fetch", "headers"] as const),
]);

/** Throws {@link InvalidRequestError} for options that are wrong: a misspelt one would leave a default in force. */
export function connectionOf(options: ClientOptions): Connection {
  for (const field of Object.keys(options)) if (!KNOWN.has(field)) refuse(field, "is not a known option");
  const { apiKey, timeoutMs = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES, headers = {} } = options;
  const given = { ...headers, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
  try {
    new Headers(given);
  } catch {
    refuse(apiKey === undefined ? "headers" : "apiKey", "cannot be sent as a header");
  }
  return {
    base: baseOf(options.url),
    headers: given,
    ...limitsOf({ timeoutMs, retries }),
    // Looked up at each call: tests and instrumentation replace the runtime's.
    fetch: options.fetch ?? ((...request) => globalThis.fetch(...request)),
  };
}

/** Throws {@link InvalidRequestError}. */
function limitsOf({ timeoutMs, retries }: { readonly timeoutMs: number; readonly retries: number }) {
  if (!Number.isInteger(timeoutMs) || timeoutMs < 0 || timeoutMs > MAX_TIMEOUT_MS) {
    refuse("timeoutMs", `must be a whole number of milliseconds, at most ${MAX_TIMEOUT_MS}; 0: no limit`);
  }
  if (!Number.isInteger(retries) || retries < 0 || retries > MAX_RETRIES) {
    refuse("retries", `must be a whole number, at most ${MAX_RETRIES}`);
  }
  return { timeoutMs, retries };
}

function baseOf(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) refuse("url", "must be an http or https address");
  if (url.username !== "" || url.password !== "") refuse("url", "must not have a password: give apiKey, or headers");
  if (url.search !== "" || url.hash !== "") refuse("url", "must have neither a query nor a fragment");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function refuse(field: string, message: string): never {
  throw new InvalidRequestError([{ field, message }]);
}
