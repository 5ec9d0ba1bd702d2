import {
  type Digest,
  type Label,
  labelsIn,
  type MemoryId,
  messageText,
  ownWords,
  QuoteSearch,
  type ScopeChanges,
  type UserId,
} from "../../core/index.js";
import type { FoundQuotes, ScopeQuotes } from "../api/store.js";
import { readInPieces } from "./body-reading.js";
import type { JournalRecord } from "./journal-database.js";
import { composedIn, decodedOf, decodedRow, type JournalParts, sharedKeys, sharedRows } from "./journal-parts.js";
import type { ComposedRecord } from "./said-codec.js";
import { loadScope } from "./scope-loading.js";
import { messagesInRow, type RecordedMessage, SharedMessage } from "./shared-messages.js";
import { hasTurns } from "./turn-reading.js";

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
export class QuoteScan implements ScopeQuotes {
  /** Of records by `seq`, which is never reused. */
  readonly looked = new Map<number, string>();
  /** Records that quote the memory, or name it. */
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
        this.looked.set(record.seq, "");
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
      const said = decodedRow(scopeId, () => messagesInRow(json));
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
    for (const { memoryId: holder, label, rendered: own } of register.versions) {
      const text = textOf.get(label);
      if (text === undefined) continue;
      // Who quotes a memory quotes its own words, not what a block template put around them.
      const words = ownWords(text, own);
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
