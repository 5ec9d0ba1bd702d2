import { type CallControl, type Connection, limitsOf } from "./connection.js";
import { MemstemConnectionError, MemstemHttpError, MemstemTimeoutError } from "./errors.js";
import { refusalOf } from "./refusals.js";
import type { Route } from "./routes.js";

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
  if (failure instanceof MemstemConnectionError) return route.retried === "all";
  if (!(failure instanceof MemstemHttpError) || (failure.retryAfterMs ?? 0) > MAX_RETRY_AFTER_MS) return false;
  if (failure.status === 429) return true;
  return route.retried === "all" && [502, 503, 504].includes(failure.status ?? 0);
}

function waitedFor(failure: unknown): number | null {
  return failure instanceof MemstemHttpError ? failure.retryAfterMs : null;
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
  const expire = () => controller.abort(new MemstemTimeoutError(what, timeoutMs));
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
      if (error instanceof MemstemHttpError || error instanceof MemstemConnectionError) return error;
      return new MemstemConnectionError(`${what} had no whole answer: ${wordsOf(error)}`, { cause: error });
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
