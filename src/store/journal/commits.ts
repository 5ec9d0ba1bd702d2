import type { RequestId, Scope } from "../../core/index.js";
import type { CommitBase, ComposeRecord, EngineReport, ScopeDelta, StoredVersion } from "../api/store.js";
import { appending, type EncodedChange, encodeChange, plainRecord } from "./encoded-change.js";
import type { JournalChange, JournalUnit, NewRecord } from "./journal-database.js";
import type { JournalParts } from "./journal-parts.js";
import { JournalVersion, type ScopeBook } from "./journal-version.js";
import { conversationNumber } from "./keyed-numbers.js";
import type { KnownRows } from "./known-rows.js";
import { writeShared } from "./shared-message.js";
import { shareMessages } from "./sharing.js";

/** Writes a unit; gives the scope's version with its book. */
export async function writeUnit(parts: JournalParts, unit: JournalUnit, book: ScopeBook): Promise<StoredVersion> {
  const { version } = await parts.database.write(unit);
  if (version === null) throw new Error("a unit that ends no scope leaves a version");
  return new JournalVersion(version, book);
}

/** See `Store.commitCompose`: one record, and the shared rows that it needs and that are not known to be stored. */
export async function commitCompose(
  parts: JournalParts,
  rows: KnownRows,
  scope: Scope,
  { version, deletions }: CommitBase,
  { delta, composition, request, at }: ComposeRecord,
): Promise<StoredVersion> {
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
  const known = rows.at(scope, version);
  const missing = [...used].filter((digest) => !known.has(digest));
  if (missing.length > 0) {
    const written = missing.map((digest) => {
      const message = shared.rows.get(digest);
      const messages = message === undefined ? JSON.stringify(head) : writeShared(message);
      return { digest: parts.digests.seal(digest), messages };
    });
    changes.push({ kind: "keep-shared", rows: written, replace: false });
  }
  const next = await writeUnit(parts, { scope, version, deletions, changes, at }, encoded.book);
  rows.committed(scope, version, next, used);
  return next;
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
  return writeUnit(parts, unit, encoded.book);
}
