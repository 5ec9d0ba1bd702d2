import { listInPages } from "./body-reading.js";
import type { JournalDatabase, RecordKey, RecordKind } from "./journal-database.js";

/** Kinds of records that say something of a request. */
const OF_REQUESTS: readonly RecordKind[] = ["composed", "reported", "evicted"];

/** Keys that a walk reads first; further pages are longer, as most walks end soon. */
const FIRST_PAGE = 64;

/** What a scope's records say of a request, as far as keys tell. */
export interface NamedRequest {
  readonly requestId: string;
  /** Its last compose: under an id whose answer was erased another request may be composed. */
  readonly composed: RecordKey;
  readonly isEvicted: boolean;
  /** The last report since it was composed; null: none. */
  readonly reported: RecordKey | null;
}

/** The requests of some records, in the order of scopes, and of their first records within them. Keys are in order of their numbers. */
export function requestsIn(keys: readonly RecordKey[]): readonly NamedRequest[] {
  const found = new Map<string, NamedRequest>();
  for (const key of keys) {
    const { requestId, kind } = key;
    if (requestId === null) continue;
    const name = JSON.stringify([key.scopeId, requestId]);
    const request = found.get(name);
    if (kind === "composed") found.set(name, { requestId, composed: key, isEvicted: false, reported: null });
    else if (request === undefined) continue;
    else if (kind === "evicted") found.set(name, { ...request, isEvicted: true });
    else if (kind === "reported") found.set(name, { ...request, reported: key });
  }
  return [...found.values()];
}

/** Requests of one scope by their ids; each once. */
export async function requestsNamed(
  database: JournalDatabase,
  scopeId: number,
  ids: readonly string[],
): Promise<readonly NamedRequest[]> {
  return requestsIn(await database.withRequests({ scopeId }, ids));
}

/** A scope's requests, newest first. */
export async function* newestRequests(
  database: JournalDatabase,
  scopeId: number,
): AsyncGenerator<NamedRequest, void, undefined> {
  const seen = new Set<string>();
  const evicted = new Set<string>();
  const reported = new Map<string, RecordKey>();
  for await (const keys of listInPages(database, scopeId, { kinds: OF_REQUESTS, newestFirst: true }, FIRST_PAGE)) {
    for (const key of keys) {
      const { requestId, kind } = key;
      // Of a request that was composed again under its id nothing is known but its turn.
      if (requestId === null || seen.has(requestId)) continue;
      if (kind === "evicted") evicted.add(requestId);
      else if (kind === "reported") {
        if (!reported.has(requestId)) reported.set(requestId, key);
      } else {
        seen.add(requestId);
        const isEvicted = evicted.has(requestId);
        yield { requestId, composed: key, isEvicted, reported: reported.get(requestId) ?? null };
      }
    }
  }
}
