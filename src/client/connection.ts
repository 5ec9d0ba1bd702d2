import { InvalidRequestError } from "./errors.js";

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
export function limitsOf({ timeoutMs, retries }: { readonly timeoutMs: number; readonly retries: number }) {
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
