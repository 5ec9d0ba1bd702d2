import { type MemoryId, type ScopeChanges, WITHDRAWN } from "../../core/index.js";
import type { ScopeDelta, StoredVersion } from "../api/store.js";
import type { JournalChange, NewRecord } from "./journal-database.js";
import type { JournalParts } from "./journal-parts.js";
import { JournalVersion, type ScopeBook } from "./journal-version.js";
import { memoryHashes } from "./keyed-numbers.js";
import { snapshotIsDue } from "./snapshot-policy.js";

/** What a commit does to a scope's state, encoded: nothing that changes the state later can reach it. */
export interface EncodedChange {
  /** Null where the snapshot has it. */
  readonly changes: string | null;
  /** Null: none is due. */
  readonly snapshot: string | null;
  /** The scope's newest turn. */
  readonly turn: number;
  /** Hashes of the memories that the scope may not have had before. */
  readonly memories: readonly number[];
  readonly forgotten: readonly MemoryId[];
  /** After the commit. */
  readonly book: ScopeBook;
}

/** Encodes what changed since a version; with a snapshot where one is due. Synchronous. */
export function encodeChange(
  { states, digests }: JournalParts,
  version: StoredVersion | null,
  { changes, whole }: ScopeDelta,
): EncodedChange {
  const book = JournalVersion.bookOf(version);
  const encoded = states.encodeChanges(changes);
  const { records, length, snapshotLength } = book.behind;
  const behind = { records: records + 1, length: length + encoded.length, snapshotLength };
  const snapshot = snapshotIsDue(behind) ? states.encodeState(whole()) : null;
  return {
    changes: snapshot === null ? encoded : null,
    snapshot,
    turn: newestTurn(changes),
    memories: memoryHashes(newMemories(changes), digests),
    forgotten: changes.register.forgotten,
    book: { ...book, behind: snapshot === null ? behind : behindSnapshot(snapshot) },
  };
}

/** The same for a commit that rewrites or removes earlier records: a snapshot stands in for the changes of all of them. */
export function encodeAnew({ states, digests }: JournalParts, { changes, whole }: ScopeDelta): EncodedChange {
  const snapshot = states.encodeState(whole());
  return {
    changes: null,
    snapshot,
    turn: newestTurn(changes),
    memories: memoryHashes(newMemories(changes), digests),
    forgotten: changes.register.forgotten,
    book: { behind: behindSnapshot(snapshot) },
  };
}

/** A record that says nothing and belongs to no request. */
export function plainRecord(
  { turn, changes }: EncodedChange,
  { kind, said = null, at = 0 }: Pick<NewRecord, "kind"> & Partial<Pick<NewRecord, "said" | "at">>,
): NewRecord {
  return { kind, at, turn, turns: 0, conversation: null, requestId: null, leaf: null, changes, said };
}

/** The changes of a unit that appends these records. */
export function appending(encoded: EncodedChange, records: readonly NewRecord[]): JournalChange[] {
  const { memories, snapshot, forgotten } = encoded;
  return [
    { kind: "append", records },
    ...(memories.length === 0 ? [] : [{ kind: "memories", hashes: memories } as const]),
    ...forgotten.map((memoryId) => ({ kind: "forget", memoryId }) as const),
    ...(snapshot === null ? [] : [{ kind: "snapshot", data: snapshot } as const]),
  ];
}

function behindSnapshot(snapshot: string): ScopeBook["behind"] {
  return { records: 0, length: 0, snapshotLength: snapshot.length };
}

function newestTurn({ counters }: ScopeChanges): number {
  return counters.nextTurn - 1;
}

/** Memories that may be new: of one that a further text came to, another version is listed, with a label from before. */
function newMemories({ register: { blocks, versions } }: ScopeChanges): ReadonlySet<MemoryId> {
  const all = new Set(versions.map(({ memoryId }) => memoryId));
  // One version each, and so the first: of others all are listed.
  if (all.size === versions.length) return all;
  const newLabels = new Set(blocks.map(({ label }) => label));
  const counts = new Map<MemoryId, number>();
  for (const { memoryId } of versions) counts.set(memoryId, (counts.get(memoryId) ?? 0) + 1);
  const known = new Set<MemoryId>();
  for (const { memoryId, label } of versions)
    if (counts.get(memoryId) !== 1 && label !== WITHDRAWN && !newLabels.has(label)) known.add(memoryId);
  return new Set([...counts.keys()].filter((id) => !known.has(id)));
}
