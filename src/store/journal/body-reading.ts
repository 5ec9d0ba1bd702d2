import type { JournalDatabase, JournalRecord, RecordFilter, RecordKey } from "./journal-database.js";

/** Records whose bodies are read at once: some milliseconds. */
const BODIES_AT_ONCE = 64;
/** Keys that are listed at once. */
const KEYS_AT_ONCE = 1_000;

/** Reads whole records a piece at a time, in order. */
export async function readInPieces(
  database: Pick<JournalDatabase, "read">,
  seqs: readonly number[],
  take: (record: JournalRecord) => void,
): Promise<void> {
  for (let at = 0; at < seqs.length; at += BODIES_AT_ONCE)
    for (const record of await database.read(seqs.slice(at, at + BODIES_AT_ONCE))) take(record);
}

/** Lists keys a page at a time, in the filter's order. */
export async function* listInPages(
  database: Pick<JournalDatabase, "list">,
  scopeId: number,
  filter: Omit<RecordFilter, "most">,
  most = KEYS_AT_ONCE,
): AsyncGenerator<readonly RecordKey[], void, undefined> {
  for (let from: Pick<RecordFilter, "after" | "before"> = {}; ; ) {
    const keys = await database.list(scopeId, { ...filter, ...from, most });
    const last = keys.at(-1);
    if (last === undefined) return;
    yield keys;
    if (keys.length < most) return;
    from = filter.newestFirst === true ? { before: last.n } : { after: last.n };
  }
}

/** All keys of a filter. */
export async function listAll(
  database: Pick<JournalDatabase, "list">,
  scopeId: number,
  filter: Omit<RecordFilter, "most">,
): Promise<readonly RecordKey[]> {
  const all: RecordKey[] = [];
  for await (const keys of listInPages(database, scopeId, filter)) for (const key of keys) all.push(key);
  return all;
}
