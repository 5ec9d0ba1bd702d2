import { createMemprefixClient } from "../client/index.js";

/** Tries of a request that was rejected for now, before any work was done for it. */
const TRIES = 4;
const LONGEST_WAIT_MS = 5_000;

/** The service that this page is from, called with the key that the reader gave, if any. */
export const service = createMemprefixClient({ url: location.origin, timeoutMs: 0, fetch: sent });

async function sent(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const key = readKey();
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  // What is deleted is deleted, even where the page is left.
  const keepalive = init.method === "DELETE";
  const send = () => fetch(input, { ...init, headers, keepalive, cache: "no-store", credentials: "omit" });
  let response = await send();
  for (let tried = 1; tried < TRIES && (response.status === 429 || response.status === 503); tried++) {
    const seconds = Number(response.headers.get("retry-after") ?? 1);
    await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_WAIT_MS, Math.max(0.5, seconds) * 1_000)));
    init.signal?.throwIfAborted();
    response = await send();
  }
  return response;
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
