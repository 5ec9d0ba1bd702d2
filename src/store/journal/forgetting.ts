import { setImmediate as pause } from "node:timers/promises";
import {
  type ChatMessage,
  type Digest,
  type Label,
  labelsIn,
  type MemoryId,
  QuoteSearch,
  type Scope,
  type Warning,
  withoutLabels,
} from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import {
  type CommitBase,
  type ForgetRecord,
  type FoundQuotes,
  StaleScopeError,
  type StoredAnswer,
  type StoredVersion,
  StoreUnavailableError,
} from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { readInPieces } from "./body-reading.js";
import { appending, encodeAnew, plainRecord, writeUnit } from "./commits.js";
import type { JournalChange, JournalUnit } from "./journal-database.js";
import { composedIn, decodedRow, type JournalParts, sharedRows } from "./journal-parts.js";
import { QuoteScan } from "./quote-scan.js";
import type { ComposedRecord } from "./said-codec.js";
import { messagesInRow, type SaidTurn, SharedMessage } from "./shared-messages.js";

/*
 * What a record loses when a memory is forgotten. Each gives the record itself where there is nothing to lose.
 */

/** Without a memory's labels in injections and retrievals, and without the memory in the answer. */
export function withoutMemory(said: ComposedRecord, gone: ReadonlySet<Label>, memoryId: MemoryId): ComposedRecord {
  const { request } = said;
  const turns = mapped(said.turns, (one) => turnWithout(one, gone));
  const answer = request === null ? null : answerWithout(request.answer, gone, memoryId);
  const isSame = turns === said.turns && answer === (request?.answer ?? null);
  if (isSame) return said;
  return { ...said, turns, request: request === null || answer === null ? null : { ...request, answer } };
}

/**
 * With null in place of the messages that are to be erased; their digests stay, as conversations continue from them. Of a shared one the
 * record loses the reference: a client may say it again later, and that is not to bring it back here.
 */
export function withErasedMessages(
  said: ComposedRecord,
  isErased: (message: ChatMessage | SharedMessage, digest: Digest) => boolean,
): ComposedRecord {
  const turns = mapped(said.turns, (one) => {
    const given = mapped(one.given, (message, at) =>
      message === null || isErased(message, one.turn.given[at] as Digest) ? null : message,
    );
    return given === one.given ? one : { ...one, given };
  });
  return turns === said.turns ? said : { ...said, turns };
}

function turnWithout(said: SaidTurn, gone: ReadonlySet<Label>): SaidTurn {
  const { turn } = said;
  const isNamed = [...labelsIn(turn.injection), ...turn.requested].some((label) => gone.has(label));
  if (!isNamed) return said;
  const requested = turn.requested.filter((label) => !gone.has(label));
  return { ...said, turn: { ...turn, injection: withoutLabels(turn.injection, gone), requested } };
}

function answerWithout(answer: StoredAnswer, gone: ReadonlySet<Label>, memoryId: MemoryId): StoredAnswer {
  const kept = answer.memories.filter((memory) => memory.memoryId !== memoryId && !gone.has(memory.label));
  const memories = mapped(kept, (memory) =>
    memory.replaces.some((label) => gone.has(label))
      ? { ...memory, replaces: memory.replaces.filter((label) => !gone.has(label)) }
      : memory,
  );
  const warnings = answer.warnings.some(({ memoryIds }) => memoryIds?.includes(memoryId))
    ? answer.warnings.flatMap((warning) => warningWithout(warning, memoryId))
    : answer.warnings;
  const isSame = memories.length === answer.memories.length && memories === kept && warnings === answer.warnings;
  return isSame ? answer : { ...answer, memories, warnings };
}

/** Nothing of a warning that is about this memory alone. */
function warningWithout(warning: Warning, memoryId: MemoryId): readonly Warning[] {
  const { memoryIds } = warning;
  if (!memoryIds?.includes(memoryId)) return [warning];
  const others = memoryIds.filter((id) => id !== memoryId);
  return others.length === 0 ? [] : [{ ...warning, memoryIds: others }];
}

/** The mapped list; the list itself where every element maps to itself. */
function mapped<Value>(list: readonly Value[], map: (value: Value, at: number) => Value): readonly Value[] {
  const results = list.map(map);
  return results.every((result, at) => result === list[at]) ? list : results;
}

/** Attempts at erasing quotes while other processes commit. */
const MAX_ATTEMPTS = 5;

/** What is rewritten of a scope, and the texts that are gone with it. */
interface Erasure {
  readonly changes: JournalChange[];
  readonly texts: string[];
  /** Digests of the sections that rewritten turns render to. */
  readonly sections: Set<Digest>;
}

/**
 * See `Store.commitForgetting`. Every record that quotes the memory or names it is rewritten, and a snapshot without the memory takes the
 * place of what they changed; responses may say it in other words, and go.
 *
 * The unit is in memory whole, as a scope forgets at once or not at all: what those records say, so at most as much as all of the scope's
 * requests said, some kilobytes each.
 */
export async function commitForgetting(
  parts: JournalParts,
  scope: Scope,
  { version, deletions }: CommitBase,
  record: ForgetRecord,
): Promise<StoredVersion> {
  const { delta, memoryId, gone, quotes, isInSource, at } = record;
  const encoded = encodeAnew(parts, delta);
  const erasure: Erasure = { changes: [], texts: [...quotes.texts, ...quotes.rendered], sections: new Set() };
  if (version !== null) {
    const scan = await scanFor(parts, version.scopeId, quotes, memoryId, gone);
    await eraseScanned(parts, version.scopeId, scan, record, erasure);
  }
  const said = erasure.sections.size === 0 ? null : parts.said.encodeForgotten([...erasure.sections]);
  const changes = appending(encoded, [plainRecord(encoded, { kind: "forgotten", said, at })]);
  changes.push({ kind: "forget", memoryId });
  append(changes, erasure.changes);
  const deletion = { memoryId, isInSource };
  return writeUnit(parts, { scope, version, deletions, changes, deletion, at, erased: erasure.texts }, encoded.book);
}

/** See `Store.eraseQuotes`: only quotes; labels and ids are each scope's own to forget. */
export async function eraseQuotes(parts: JournalParts, quotes: FoundQuotes): Promise<void> {
  const { database } = parts;
  for (let attempt = 1; ; attempt++) {
    const units: JournalUnit[] = [];
    for (const { scopeId, scope } of await database.scopesById([...quotes.scopes.keys()])) {
      const version = await database.versionOf(scope);
      if (version === null || version.scopeId !== scopeId) continue;
      const found = quotes.scopes.get(scopeId);
      const scan = found instanceof QuoteScan ? found : new QuoteScan(found?.search ?? new QuoteSearch(), null);
      await scan.goOn(parts, scopeId, pause);
      const erasure: Erasure = { changes: [], texts: [], sections: new Set() };
      await eraseScanned(parts, scopeId, scan, null, erasure);
      const changes = [...(await newVersion(parts, scopeId)), ...erasure.changes];
      if (erasure.changes.length > 0)
        units.push({ scope, version, deletions: null, changes, at: 0, erased: erasure.texts });
    }
    if (units.length === 0) return;
    try {
      await database.writeTogether(units);
      return;
    } catch (error) {
      if (!(error instanceof StaleScopeError)) throw error;
      if (attempt === MAX_ATTEMPTS) throw new StoreUnavailableError("busy", { cause: error });
    }
  }
}

/** A record without changes: other processes know their versions' instructions as stored, and those may go. */
async function newVersion({ database }: JournalParts, scopeId: number): Promise<readonly JournalChange[]> {
  const [newest] = await database.list(scopeId, { newestFirst: true, most: 1 });
  if (newest === undefined) return [];
  const { turn } = newest;
  const none = { conversation: null, requestId: null, leaf: null, changes: null, said: null };
  return [{ kind: "append", records: [{ kind: "changed", at: 0, turn, turns: 0, ...none }] }];
}

/** A scan that has seen all of the scope, the one made before if it looked for enough. */
async function scanFor(
  parts: JournalParts,
  scopeId: number,
  { texts, scopes }: FoundQuotes,
  memoryId: MemoryId,
  gone: ReadonlySet<Label>,
): Promise<QuoteScan> {
  const before = scopes.get(scopeId);
  const isEnough = before instanceof QuoteScan && before.isFor(memoryId, gone);
  const search = before?.search ?? new QuoteSearch(texts);
  const scan = isEnough ? before : new QuoteScan(search, { memoryId, labels: gone });
  await scan.goOn(parts, scopeId, pause);
  return scan;
}

/** @param forget null: only quotes are erased */
async function eraseScanned(
  parts: JournalParts,
  scopeId: number,
  scan: QuoteScan,
  forget: ForgetRecord | null,
  erasure: Erasure,
): Promise<void> {
  await readInPieces(parts.database, [...scan.quoting], (record) => {
    const { seq, kind } = record;
    // A snapshot has what it changed.
    const changes = forget === null ? {} : { changes: null };
    if (kind !== "composed" && kind !== "said") {
      if (forget !== null) erasure.changes.push({ kind: "rewrite", seq, to: changes });
      return;
    }
    const before = composedIn(parts, record);
    const after = erased(before, scan, forget, erasure);
    const said = after === before ? {} : { said: parts.said.encodeComposed(after) };
    if (forget !== null || after !== before)
      erasure.changes.push({ kind: "rewrite", seq, to: { ...changes, ...said } });
  });
  const quoting = [...scan.shared].flatMap(([key, isQuoting]) => (isQuoting ? [key] : []));
  // Instructions are stored again with the next prompt that has them; until then no answer with them can be repeated.
  const removed: SealedDigest[] = [];
  for await (const { key, json } of sharedRows(parts, scopeId, quoting)) {
    append(
      erasure.texts,
      decodedRow(scopeId, () => messagesInRow(json)).map((message) => JSON.stringify(message)),
    );
    removed.push(parts.digests.seal(key));
  }
  if (removed.length > 0) erasure.changes.push({ kind: "remove-shared", digests: removed });
  // An answer may say in other words what is forgotten, so it is not searched for quotes.
  if ((await parts.database.responsesOf(scopeId)).length > 0) erasure.changes.push({ kind: "remove-responses" });
}

function erased(before: ComposedRecord, scan: QuoteScan, forget: ForgetRecord | null, { texts, sections }: Erasure) {
  const unquoted = withErasedMessages(before, (message) => {
    if (!scan.isQuote(message)) return false;
    // Of a shared one, the row has the text.
    if (!(message instanceof SharedMessage)) texts.push(JSON.stringify(message));
    return true;
  });
  if (forget === null) return unquoted;
  const { gone, memoryId, sectionsOf } = forget;
  const after = withoutMemory(unquoted, gone, memoryId);
  // A client may send back a section as it is replayed from now on.
  for (const [at, { turn }] of after.turns.entries())
    if (turn !== before.turns[at]?.turn) for (const section of sectionsOf(turn)) sections.add(section);
  return after;
}
