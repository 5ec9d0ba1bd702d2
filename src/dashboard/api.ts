import type { z } from "zod";
import type { health } from "../http/contracts/health-contract.js";
import type {
  usageRequestResult,
  usageRequestsResult,
  usageRow,
  usageSummaryResult,
  usageSums,
} from "../http/contracts/usage-contract.js";

/*
 * Calls of the public HTTP API, with the key that the reader gave, if any. Answers are this service's own, of this version: they are typed by
 * its contracts, not checked again.
 */

/** An answer other than success. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

/** Parameters of a query; what is null, undefined or empty is left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** `GET`. Rejects with {@link ApiError}, and with a `TypeError` where the service does not answer. */
export async function getJson<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await asked("GET", withQuery(path, query), undefined, signal)).json() as Promise<T>;
}

/** `POST` of JSON. Rejects as {@link getJson} does. */
export async function postJson<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await asked("POST", path, body, signal)).json() as Promise<T>;
}

/** `DELETE`, which goes on when the page is left. Rejects as {@link getJson} does. */
export async function remove(path: string, query: Query): Promise<void> {
  await asked("DELETE", withQuery(path, query), undefined, undefined, true);
}

/** Tries of a request that was rejected for now, before any work was done for it. */
const TRIES = 4;
const LONGEST_WAIT_MS = 5_000;

async function asked(
  method: string,
  path: string,
  body: unknown,
  signal?: AbortSignal,
  keepalive = false,
): Promise<Response> {
  const key = readKey();
  const send = () =>
    fetch(path, {
      method,
      keepalive,
      cache: "no-store",
      credentials: "omit",
      ...(signal === undefined ? {} : { signal }),
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  let response = await send();
  for (let tried = 1; tried < TRIES && (response.status === 429 || response.status === 503); tried++) {
    const seconds = Number(response.headers.get("retry-after") ?? 1);
    await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_WAIT_MS, Math.max(0.5, seconds) * 1_000)));
    signal?.throwIfAborted();
    response = await send();
  }
  if (response.ok) return response;
  throw new ApiError(response.status, await detailOf(response));
}

async function detailOf(response: Response): Promise<string> {
  try {
    const { detail, title, errors } = (await response.json()) as {
      detail?: string;
      title?: string;
      errors?: readonly { field: string; message: string }[];
    };
    const fields = errors?.map(({ field, message }) => `${field} ${message}`).join("; ");
    return [detail ?? title, fields].filter(Boolean).join(": ") || response.statusText;
  } catch {
    return response.statusText;
  }
}

/** A path with its parameters. */
function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

const NAME = "memprefix-key";
let kept: string | null = null;

/**
 * The reader's API key; null where none was given. It is in this tab's session storage, so that it outlives a reload and no tab. The page
 * itself is the same for everybody and holds no data; what it shows is what its key may read.
 */
export function readKey(): string | null {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return kept;
  }
}

/** Keeps a key; null forgets it. */
export function keepKey(key: string | null): void {
  kept = key;
  try {
    if (key === null) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, key);
  } catch {
    // Storage is blocked: the key lives as long as the page.
  }
}

/*
 * What the HTTP API answers, by its own contracts.
 */

export type WireHealth = z.output<typeof health>;
export type WireSums = z.output<typeof usageSums>;
export type WireSummary = z.output<typeof usageSummaryResult>;
export type WireRow = z.output<typeof usageRow>;
export type WireRows = z.output<typeof usageRequestsResult>;
export type WireMisses = WireSummary["misses"];
export type WireRequest = z.output<typeof usageRequestResult>;
export type WireExplained = NonNullable<WireRequest["explanation"]["continued"]>;
export type WireMessages = WireRequest["messages"];
