import { MemprefixError, type Problem } from "./errors.js";
import type { Route } from "./routes.js";

export interface ClientOptions {
  /** As `http://127.0.0.1:4600`; it may end with a path. */
  readonly url: string;
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined;
  /** Default: 30,000; for batches 0. 0: no limit. */
  readonly timeoutMs?: number | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface CallControl {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

export interface Outgoing {
  readonly query?: object;
  /** JSON. */
  readonly body?: string;
  /** An error status that is also an answer. */
  readonly alsoAnswered?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;

/** Sends a request and gives its answer's JSON. Rejects with {@link MemprefixError}, or with the signal's reason. */
export type Send = (route: Route, outgoing: Outgoing, call: CallControl) => Promise<object>;

export function senderTo({ url, apiKey, timeoutMs = DEFAULT_TIMEOUT_MS, fetch: own, headers }: ClientOptions): Send {
  const base = new URL(url).href.replace(/\/+$/, "");
  const authorization: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return async (route, { query = {}, body, alsoAnswered }, call) => {
    const what = `${route.method} ${route.path}`;
    const most = call.timeoutMs ?? (route.operation === "composeBatch" ? 0 : timeoutMs);
    const signals = [...(call.signal ? [call.signal] : []), ...(most === 0 ? [] : [AbortSignal.timeout(most)])];
    const typed: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
    const request = {
      method: route.method,
      headers: { ...headers, ...authorization, ...typed },
      signal: AbortSignal.any(signals),
      ...(body === undefined ? {} : { body }),
    };
    try {
      // Looked up at each call: tests and instrumentation replace the runtime's.
      const response = await (own ?? globalThis.fetch)(`${base}${route.path}${queryOf(query)}`, request);
      if (response.ok || response.status === alsoAnswered) return await jsonIn(route, response);
      throw await refusal(what, response);
    } catch (error) {
      if (error instanceof MemprefixError) throw error;
      call.signal?.throwIfAborted();
      throw new MemprefixError(`${what} had no whole answer: ${wordsOf(error)}`, null, null, { cause: error });
    }
  };
}

/** An answer's JSON. Throws {@link MemprefixError} where the body is not the service's. */
async function jsonIn({ method, path, answers }: Route, response: Response): Promise<object> {
  const text = await response.text();
  const json = parsed(text);
  if (typeof json === "object" && json !== null && answers in json) return json;
  const message = `${method} ${path} was answered ${response.status}, but not by memprefix: is the url right?`;
  throw new MemprefixError(message, response.status);
}

async function refusal(what: string, response: Response): Promise<MemprefixError> {
  const json = parsed(await response.text()) as Partial<Problem> | null | undefined;
  const problem = typeof json?.title === "string" && typeof json.status === "number" ? (json as Problem) : null;
  const says = problem?.detail ?? problem?.title ?? "not by memprefix: is the url right?";
  return new MemprefixError(`${what} was answered ${response.status}: ${says}`, response.status, problem);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Leaves out absent fields. Throws for half of a surrogate pair, which would become another character. */
function queryOf(query: object): string {
  const given = Object.entries(query).filter(([, value]) => value != null);
  const fields = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return fields.length === 0 ? "" : `?${fields.join("&")}`;
}

/** Runtimes say `fetch failed` and put the reason into the cause. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== "" ? error.cause.message : error.message;
}
