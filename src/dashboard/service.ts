import { createMemprefixClient } from "../client/index.js";

/** Attempts of a request that was rejected before any work was done. */
const TRIES = 4;
const LONGEST_WAIT_MS = 5_000;

/** The service that served this page, called with the reader's key, if any. */
export const service = createMemprefixClient({ url: location.origin, timeoutMs: 0, fetch: sent });

async function sent(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const key = readKey();
  if (key !== null) headers.set("authorization", `Bearer ${key}`);
  // A deletion completes even if the reader leaves the page.
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
 * The reader's API key; null for none. It is in the tab's session storage: it survives a reload, but not the tab. The page itself holds no
 * data; it shows what its key may read.
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
