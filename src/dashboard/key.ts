/*
 * The reader's API key: in this tab's session storage, so that it outlives a reload and no tab. The page itself is the same for everybody and
 * holds no data; what it shows is what its key may read.
 */

const NAME = "memstem-key";

/** The key; null where none was given. */
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

let kept: string | null = null;
