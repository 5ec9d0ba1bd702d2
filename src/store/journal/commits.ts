import {
  type Digest,
  type MemoryId,
  type RequestId,
  type Scope,
  type ScopeChanges,
  WITHDRAWN,
} from "../../core/index.js";
import type { CommitBase, ComposeRecord, EngineReport, ScopeDelta, StoredVersion } from "../api/store.js";
import { conversationNumber, memoryHashes } from "../database/digest-seal.js";
import type { JournalChange, JournalUnit, NewRecord } from "./journal-database.js";
import type { JournalParts } from "./journal-parts.js";
import { shareMessages, writeShared } from "./said-codec.js";

/** What has come since a scope's last snapshot. */
export interface BehindSnapshot {
  /** Records, … */
  readonly records: number;
  /** … and the length of their changes. */
  readonly length: number;
  /** The length of the last snapshot; 0: there is none. */
  readonly snapshotLength: number;
}

/** Records that are cheaper to read than a snapshot is to write. */
const FEWEST_RECORDS = 32;

/** Records whose number alone makes a load slow, as it reads them whole: what was said is much longer than what changed. */
const MOST_RECORDS = 256;

/**
 * Whether the next commit writes a snapshot. A load reads at most about twice the state. Snapshots that the length of changes makes due are
 * together at most twice as long as the changes, because a state is at most as long as its last snapshot and the changes since. Those that
 * the number of records makes due add at most a 256th of the state to each commit.
 */
export function snapshotIsDue({ records, length, snapshotLength }: BehindSnapshot): boolean {
  return records >= MOST_RECORDS || (records >= FEWEST_RECORDS && length >= snapshotLength);
}

const NOTHING_KNOWN: BehindSnapshot = { records: 0, length: 0, snapshotLength: 0 };

/** A version, with what came since the last snapshot, which no comparison of versions sees. */
export class JournalVersion implements StoredVersion {
  readonly scopeId: number;
  readonly commits: number;
  readonly sum: number | undefined;
  readonly #behind: BehindSnapshot;

  constructor({ scopeId, commits, sum }: StoredVersion, behind: BehindSnapshot) {
    this.scopeId = scopeId;
    this.commits = commits;
    this.sum = sum;
    this.#behind = behind;
  }

  /** Of a version from elsewhere, as if nothing had come. */
  static behind(version: StoredVersion | null): BehindSnapshot {
    return version instanceof JournalVersion ? version.#behind : NOTHING_KNOWN;
  }
}

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
  readonly behind: BehindSnapshot;
}

/** Encodes what changed since a version; with a snapshot where one is due. Synchronous. */
export function encodeChange(
  { states, digests }: JournalParts,
  version: StoredVersion | null,
  { changes, whole }: ScopeDelta,
): EncodedChange {
  const encoded = states.encodeChanges(changes);
  const { records, length, snapshotLength } = JournalVersion.behind(version);
  const behind = { records: records + 1, length: length + encoded.length, snapshotLength };
  const snapshot = snapshotIsDue(behind) ? states.encodeState(whole()) : null;
  return {
    changes: snapshot === null ? encoded : null,
    snapshot,
    turn: newestTurn(changes),
    memories: memoryHashes(newMemories(changes), digests),
    forgotten: changes.register.forgotten,
    behind: snapshot === null ? behind : behindSnapshot(snapshot),
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
    behind: behindSnapshot(snapshot),
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

function behindSnapshot(snapshot: string): BehindSnapshot {
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

/** Writes a unit; gives the scope's version with what came since its snapshot. */
export async function writeUnit(
  parts: JournalParts,
  unit: JournalUnit,
  behind: BehindSnapshot,
): Promise<StoredVersion> {
  const { version } = await parts.database.write(unit);
  if (version === null) throw new Error("a unit that ends no scope leaves a version");
  return new JournalVersion(version, behind);
}

/**
 * See `Store.commitCompose`: one record, and the shared rows that it needs and that are not known to be stored. `used`: all that it needs.
 */
export function commitCompose(
  parts: JournalParts,
  known: ReadonlySet<Digest>,
  scope: Scope,
  { version, deletions }: CommitBase,
  { delta, composition, request, at }: ComposeRecord,
): { readonly committed: Promise<StoredVersion>; readonly used: ReadonlySet<Digest> } {
  const encoded = encodeChange(parts, version, delta);
  const { turn, restated, head, sections, leaf } = composition;
  const shared = shareMessages(restated, composition);
  const used = new Set([...shared.rows.keys(), turn.head]);
  const record: NewRecord = {
    ...plainRecord(encoded, { kind: "composed", at }),
    turn: turn.id,
    turns: restated.length + 1,
    conversation: turn.conversationId === null ? null : conversationNumber(turn.conversationId, parts.digests),
    requestId: request.id,
    leaf,
    said: parts.said.encodeComposed({ turns: shared.turns, sections, request }),
  };
  const changes = appending(encoded, [record]);
  const missing = [...used].filter((digest) => !known.has(digest));
  if (missing.length > 0) {
    const written = missing.map((digest) => {
      const message = shared.rows.get(digest);
      const messages = message === undefined ? JSON.stringify(head) : writeShared(message);
      return { digest: parts.digests.seal(digest), messages };
    });
    changes.push({ kind: "keep-shared", rows: written });
  }
  return { committed: writeUnit(parts, { scope, version, deletions, changes, at }, encoded.behind), used };
}

/** See `Store.commitReport`. */
export async function commitReport(
  parts: JournalParts,
  scope: Scope,
  base: CommitBase,
  delta: ScopeDelta,
  { id, observed }: { readonly id: RequestId; readonly observed: EngineReport },
): Promise<StoredVersion> {
  const encoded = encodeChange(parts, base.version, delta);
  const said = parts.said.encodeReported(observed);
  return write(parts, scope, base, encoded, [{ ...plainRecord(encoded, { kind: "reported", said }), requestId: id }]);
}

/** See `Store.commitEviction`: a record for each request, the first of which has the changes. */
export async function commitEviction(
  parts: JournalParts,
  scope: Scope,
  base: CommitBase,
  delta: ScopeDelta,
  ids: readonly RequestId[],
): Promise<StoredVersion> {
  const encoded = encodeChange(parts, base.version, delta);
  const record = plainRecord(encoded, { kind: "evicted" });
  const records = ids.map((requestId, at) => ({ ...record, requestId, changes: at === 0 ? record.changes : null }));
  return write(parts, scope, base, encoded, records.length > 0 ? records : [{ ...record, kind: "changed" }]);
}

/** See `Store.commitChanges`. */
export async function commitChanges(
  parts: JournalParts,
  scope: Scope,
  base: CommitBase,
  delta: ScopeDelta,
): Promise<StoredVersion> {
  const encoded = encodeChange(parts, base.version, delta);
  return write(parts, scope, base, encoded, [plainRecord(encoded, { kind: "changed" })]);
}

/** See `Store.commitEnd`. */
export async function commitEnd(parts: JournalParts, scope: Scope, { version, deletions }: CommitBase): Promise<void> {
  const changes: readonly JournalChange[] = [{ kind: "end" }];
  await parts.database.write({ scope, version, deletions, changes, at: 0 });
}

function write(
  parts: JournalParts,
  scope: Scope,
  { version, deletions }: CommitBase,
  encoded: EncodedChange,
  records: readonly NewRecord[],
): Promise<StoredVersion> {
  const unit = { scope, version, deletions, changes: appending(encoded, records), at: 0 };
  return writeUnit(parts, unit, encoded.behind);
}
