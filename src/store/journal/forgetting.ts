import { setImmediate as pause } from "node:timers/promises";
import {
  type ChatMessage,
  type Digest,
  type Label,
  labelsIn,
  type MemoryId,
  messageText,
  ownWords,
  QuoteSearch,
  type Scope,
  type ScopeChanges,
  type UserId,
  type Warning,
  withoutLabels,
} from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import {
  type CommitBase,
  type ForgetRecord,
  type FoundQuotes,
  retriedWhileStale,
  type StoredAnswer,
  type StoredVersion,
} from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { appending, encodeAnew, plainRecord, writeUnit } from "./commits.js";
import type { JournalChange, JournalRecord, JournalUnit } from "./journal-database.js";
import { composedIn, decodedOf, type JournalParts, readInPieces, sharedKeys, sharedRows } from "./journal-parts.js";
import {
  type ComposedRecord,
  messagesInRow,
  type RecordedMessage,
  type SaidTurn,
  SharedMessage,
} from "./said-codec.js";
import { hasTurns, loadScope } from "./turn-reading.js";

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

/** What is rewritten of a scope, and the texts that are gone with it. */
interface Erasure {
  readonly changes: JournalChange[];
  readonly texts: string[];
  /** Digests of the sections that rewritten turns render to. */
  readonly sections: Set<Digest>;
}

/**
 * See `Store.commitForgetting`. Every record that quotes the memory or names it is rewritten, and a snapshot without the memory takes the
 * place of what they changed.
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
  const { delta, memoryId, gone, quotes, keptResponses, isInSource, at } = record;
  const encoded = encodeAnew(parts, delta);
  const erasure: Erasure = { changes: [], texts: [...quotes.texts, ...quotes.rendered], sections: new Set() };
  if (version !== null) {
    const scan = await scanFor(parts, version.scopeId, quotes, memoryId, gone);
    await eraseScanned(parts, version.scopeId, scan, record, erasure);
  }
  const said = erasure.sections.size === 0 ? null : parts.said.encodeForgotten([...erasure.sections]);
  const changes = appending(encoded, [plainRecord(encoded, { kind: "forgotten", said, at })]);
  changes.push({ kind: "forget", memoryId }, { kind: "keep-responses", ids: keptResponses });
  append(changes, erasure.changes);
  const deletion = { memoryId, isInSource };
  return writeUnit(parts, { scope, version, deletions, changes, deletion, at, erased: erasure.texts }, encoded.behind);
}

/** See `Store.eraseQuotes`: only quotes; labels and ids are each scope's own to forget. */
export async function eraseQuotes(parts: JournalParts, quotes: FoundQuotes): Promise<void> {
  const { database } = parts;
  await retriedWhileStale(async () => {
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
    if (units.length > 0) await database.writeTogether(units);
  });
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
      decodedOf({ scopeId }, () => messagesInRow(json)).map((message) => JSON.stringify(message)),
    );
    removed.push(parts.digests.seal(key));
  }
  if (removed.length > 0) erasure.changes.push({ kind: "remove-shared", digests: removed });
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

/** Characters searched before other work runs: some ten milliseconds. */
const CHARACTERS_AT_ONCE = 500_000;
/** Characters of a text after which other work runs before the next is prepared. */
const LONG_TEXT = 1_000;
/** Records whose bodies are in memory at once. */
const RECORDS_AT_ONCE = 64;

/** A memory that is searched for, with the labels of its blocks. */
export interface SearchedMemory {
  readonly memoryId: MemoryId;
  readonly labels: ReadonlySet<Label>;
}

/** What was found in one scope: which records quote a memory or name it, and which shared rows quote it. */
class QuoteScan {
  /** Records that quote the memory, or name it, by `seq`, which is never reused. */
  readonly quoting = new Set<number>();
  /** Shared rows that were searched, and whether they quote it: a row never changes, but it may go and come again. */
  readonly shared = new Map<Digest, boolean>();
  /** The number of the last record that was searched. */
  #upTo = 0;

  /** @param memory null: only quotes are searched for */
  constructor(
    readonly search: QuoteSearch,
    readonly memory: SearchedMemory | null,
  ) {}

  /** Whether a search for this memory would find no more. */
  isFor(memoryId: MemoryId, gone: ReadonlySet<Label>): boolean {
    if (this.memory?.memoryId !== memoryId) return false;
    return [...gone].every((label) => this.memory?.labels.has(label));
  }

  /** Searches what was stored since the last call, in pieces. */
  async goOn(parts: JournalParts, scopeId: number, pause: () => Promise<void>): Promise<void> {
    const { database } = parts;
    let looked = 0;
    const take = async (characters: number) => {
      looked += characters;
      if (looked < CHARACTERS_AT_ONCE) return;
      looked = 0;
      await pause();
    };
    for (;;) {
      const keys = await database.list(scopeId, { after: this.#upTo, most: RECORDS_AT_ONCE });
      const records: JournalRecord[] = [];
      await readInPieces(
        database,
        keys.map(({ seq }) => seq),
        (record) => records.push(record),
      );
      const said = records.map((record) => (hasTurns(record) ? composedIn(parts, record) : null));
      // Before their records, as those are looked at once: a row is stored with the first record that refers to it.
      await this.#searchShared(parts, scopeId, sharedIn(said), take);
      for (const [at, record] of records.entries()) {
        if (this.#concerns(parts, record, said[at] ?? null)) this.quoting.add(record.seq);
        await take((record.said?.length ?? 0) + (record.changes?.length ?? 0));
      }
      this.#upTo = keys.at(-1)?.n ?? this.#upTo;
      await pause();
      if (keys.length < RECORDS_AT_ONCE) break;
    }
    // Instructions, and rows that nothing refers to.
    if (!this.search.isEmpty) await this.#searchShared(parts, scopeId, await sharedKeys(parts, scopeId), take);
  }

  /** Searches rows that were not searched before. */
  async #searchShared(
    parts: JournalParts,
    scopeId: number,
    keys: readonly Digest[],
    take: (characters: number) => Promise<void>,
  ): Promise<void> {
    if (this.search.isEmpty) return;
    const unknown = keys.filter((key) => !this.shared.has(key));
    for await (const { key, json } of sharedRows(parts, scopeId, unknown)) {
      const said = decodedOf({ scopeId }, () => messagesInRow(json));
      this.shared.set(
        key,
        said.some((message) => this.isQuote(message)),
      );
      await take(json.length);
    }
  }

  /** Whether a message quotes the memory; a shared one, by its row. */
  isQuote(message: RecordedMessage): boolean {
    if (message === null || this.search.isEmpty) return false;
    if (message instanceof SharedMessage) return this.shared.get(message.key) === true;
    if (this.search.isIn(JSON.stringify(message))) return true;
    const { content } = message;
    // A reader takes a text in several parts for one.
    return Array.isArray(content) && content.length > 1 && this.search.isIn(messageText({ role: "", content }));
  }

  #concerns(parts: JournalParts, record: JournalRecord, said: ComposedRecord | null): boolean {
    const { changes } = record;
    if (said?.turns.some(({ given }) => given.some((message) => this.isQuote(message)))) return true;
    const { memory } = this;
    if (memory === null) return false;
    if (said !== null && namesIn(said, memory)) return true;
    if (changes === null) return false;
    return isChanging(
      decodedOf(record, () => parts.states.decodeChanges(changes)),
      memory,
    );
  }
}

/** See `Store.findQuotes`. */
export async function findQuotes(
  parts: JournalParts,
  tenant: string,
  userId: UserId,
  memoryId: MemoryId,
  texts: readonly string[],
  pause: () => Promise<void>,
): Promise<FoundQuotes> {
  const all = new Set(texts);
  const rendered = new Set<string>();
  const ofScopes: { scopeId: number; others: Set<string>; labels: Set<Label> }[] = [];
  for (const { scopeId, scope } of await parts.database.scopesOf(tenant, userId)) {
    const { register } = (await loadScope(parts, scope)).scope;
    const textOf = new Map(register.blocks.map(({ label, text }) => [label, text]));
    const others = new Set<string>();
    const labels = new Set<Label>();
    for (const { memoryId: holder, label, dated = false } of register.versions) {
      const text = textOf.get(label);
      if (text === undefined) continue;
      // Who quotes a memory quotes its own words, not the date before them.
      const words = ownWords(text, dated);
      if (holder === memoryId) {
        labels.add(label);
        all.add(words);
        if (words !== text) rendered.add(text);
      } else others.add(words);
    }
    ofScopes.push({ scopeId, others, labels });
    await pause();
  }
  const scopes = new Map<number, QuoteScan>();
  for (const { scopeId, others, labels } of ofScopes) {
    const search = new QuoteSearch();
    for (const text of all) {
      if (others.has(text)) continue;
      search.add(text);
      if (text.length > LONG_TEXT) await pause();
    }
    const scan = new QuoteScan(search, { memoryId, labels });
    scopes.set(scopeId, scan);
    await scan.goOn(parts, scopeId, pause);
  }
  return { texts: [...all], rendered: [...rendered], scopes };
}

/** Keys of the messages that some records share with others. */
function sharedIn(said: readonly (ComposedRecord | null)[]): readonly Digest[] {
  const keys = new Set<Digest>();
  for (const record of said)
    for (const { given } of record?.turns ?? [])
      for (const message of given) if (message instanceof SharedMessage) keys.add(message.key);
  return [...keys];
}

function namesIn({ turns, request }: ComposedRecord, { memoryId, labels }: SearchedMemory): boolean {
  const isNamed = (label: Label) => labels.has(label);
  for (const { turn } of turns)
    if (turn.requested.some(isNamed) || [...labelsIn(turn.injection)].some(isNamed)) return true;
  if (request === null) return false;
  const { memories, warnings } = request.answer;
  if (warnings.some(({ memoryIds }) => memoryIds?.includes(memoryId))) return true;
  return memories.some(
    (memory) => memory.memoryId === memoryId || isNamed(memory.label) || memory.replaces.some(isNamed),
  );
}

/** Whether changes name a memory or one of its labels anywhere. */
function isChanging(changes: ScopeChanges, { memoryId, labels }: SearchedMemory): boolean {
  const { register, index, recent, workers, published } = changes;
  const isNamed = (label: Label) => labels.has(label);
  const lists = [
    register.removedBlocks,
    ...register.blocks.map(({ label, supersededBy }) => [label, ...(supersededBy === null ? [] : [supersededBy])]),
    ...index.upserted.map(({ run }) => run),
    ...[...recent.upserted, ...workers.upserted, ...(published?.accesses.upserted ?? [])].map((row) => row.labels),
    ...(published?.clusters.upserted ?? []).map(({ blocks }) => blocks),
  ];
  return (
    register.versions.some((version) => version.memoryId === memoryId || isNamed(version.label)) ||
    lists.some((list) => list.some(isNamed))
  );
}
