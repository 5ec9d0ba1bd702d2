import type { Scope } from "../../core/index.js";
import type { CommitBase, StoredVersion } from "../api/store.js";
import { listAll, listInPages, readInPieces } from "./body-reading.js";
import type { JournalChange, RecordKind } from "./journal-database.js";
import type { JournalParts } from "./journal-parts.js";

/** Records that are looked at, and rewritten, at once. */
const AT_ONCE = 200;
/** Kinds of records that say nothing without their changes. */
const PASSING: readonly RecordKind[] = ["changed", "expired"];
const TELLING: readonly RecordKind[] = ["said", "composed", "reported", "evicted", "forgotten", "withdrawn"];
/** An expiry leaves no changes in any record before its own. */
const MARK = { kinds: ["expired"], newestFirst: true, most: 1 } as const;

/**
 * What takes the changes out of all of a scope's records, in a unit that ends with an `expired` record and a snapshot: they hold texts of
 * blocks that expire. Records that say nothing without their changes are removed. Each record is read once in its life for this.
 *
 * What the stored snapshot has superseded already may be of any length, and is written here and now, in pieces; so the unit has the changes
 * that a load reads, at most. `leaving`: records that go with the unit anyway.
 */
export async function withoutChanges(
  { database }: JournalParts,
  scope: Scope,
  { version, deletions }: CommitBase & { readonly version: StoredVersion },
  leaving: ReadonlySet<number>,
): Promise<readonly JournalChange[]> {
  const { scopeId } = version;
  const passing = await listAll(database, scopeId, { kinds: PASSING });
  const inUnit: JournalChange[] = [{ kind: "remove", seqs: passing.map(({ seq }) => seq) }];
  const [mark] = await database.list(scopeId, MARK);
  const superseded = (await database.load(scope)).snapshot?.n ?? 0;
  for await (const keys of listInPages(database, scopeId, { kinds: TELLING, after: mark?.n ?? 0 }, AT_ONCE)) {
    const now: JournalChange[] = [];
    const seqs = keys.map(({ seq }) => seq).filter((seq) => !leaving.has(seq));
    await readInPieces(database, seqs, ({ seq, n, changes }) => {
      if (changes !== null) (n <= superseded ? now : inUnit).push({ kind: "rewrite", seq, to: { changes: null } });
    });
    if (now.length > 0) await database.write({ scope, version, deletions, changes: now, at: 0 });
  }
  return inUnit;
}
