import type { ChatMessage, Digest } from "../../core/index.js";
import { StoreUnavailableError } from "../api/store.js";
import { DigestSeal } from "../database/digest-seal.js";
import type { JournalDatabase, JournalRecord, RecordFilter, RecordKey } from "./journal-database.js";
import {
  type ComposedRecord,
  DamagedRecordError,
  type RecordedMessage,
  readShared,
  SaidCodec,
  type SaidTurn,
  SharedMessage,
} from "./said-codec.js";
import { ScopeCodec } from "./scope-codec.js";

/** What the journal's questions and commits are made of. */
export interface JournalParts {
  readonly database: JournalDatabase;
  readonly digests: DigestSeal;
  readonly states: ScopeCodec;
  readonly said: SaidCodec;
}

export function journalParts(database: JournalDatabase): JournalParts {
  const digests = new DigestSeal(() => database.sealKey);
  return { database, digests, states: new ScopeCodec(digests), said: new SaidCodec(digests) };
}

/** What a record of kind `said` or `composed` says. */
export function composedIn({ said }: JournalParts, record: JournalRecord): ComposedRecord {
  return decodedOf(record, () => said.decodeComposed(bodyOf(record)));
}

/** Only the turns of such a record. */
export function turnsIn({ said }: JournalParts, record: JournalRecord): readonly SaidTurn[] {
  return decodedOf(record, () => said.decodeTurns(bodyOf(record)));
}

/** What an engine reported, by its record. */
export function reportIn({ said }: JournalParts, record: JournalRecord) {
  return decodedOf(record, () => said.decodeReported(bodyOf(record)));
}

/**
 * Decodes something of a record, or its scope's snapshot, or, without `n`, a shared row; a damaged one is a fault of the store that names
 * the record or the scope.
 */
export function decodedOf<T>(of: { readonly scopeId: number; readonly n?: number }, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error;
    const record = of.n === undefined ? "" : `record ${of.n} of `;
    const cause = new Error(`${record}scope ${of.scopeId}: ${error.message}`, { cause: error });
    throw new StoreUnavailableError("damaged", { cause });
  }
}

function bodyOf({ said }: JournalRecord): string {
  if (said === null) throw new DamagedRecordError("it says nothing");
  return said;
}

/** Rows that are read at once. */
const ROWS_AT_ONCE = 64;

/** Messages as records have them, null for each that was erased. */
export type ReadMessages = readonly (ChatMessage | null)[];

/** The texts of messages that a scope's turns share; each is read once. To be dropped with the question that it answers. */
export class SharedTexts {
  readonly #known = new Map<Digest, ChatMessage | null>();

  constructor(
    private readonly parts: JournalParts,
    private readonly scopeId: number,
  ) {}

  /** Reads what some turns were given, all of it together. */
  async read(said: readonly (readonly RecordedMessage[])[]): Promise<readonly ReadMessages[]> {
    const missing = new Set<Digest>();
    for (const messages of said)
      for (const message of messages)
        if (message instanceof SharedMessage && !this.#known.has(message.key)) missing.add(message.key);
    if (missing.size > 0) await this.#load([...missing]);
    return said.map((messages) => messages.map((message) => this.#textOf(message)));
  }

  async #load(keys: readonly Digest[]): Promise<void> {
    const { scopeId } = this;
    const read = new Map<Digest, ChatMessage>();
    for await (const { key, json } of sharedRows(this.parts, scopeId, keys))
      read.set(
        key,
        decodedOf({ scopeId }, () => readShared(key, json)),
      );
    for (const key of keys) this.#known.set(key, read.get(key) ?? null);
  }

  #textOf(message: RecordedMessage): ChatMessage | null {
    return message instanceof SharedMessage ? (this.#known.get(message.key) ?? null) : message;
  }
}

/** A shared row by its key. */
export interface KeyedRow {
  readonly key: Digest;
  readonly json: string;
}

/** Rows by their keys, read in pieces; those that are gone are left out. */
export async function* sharedRows(
  { database, digests }: JournalParts,
  scopeId: number,
  keys: readonly Digest[],
): AsyncGenerator<KeyedRow, void, undefined> {
  for (let at = 0; at < keys.length; at += ROWS_AT_ONCE) {
    const sealed = keys.slice(at, at + ROWS_AT_ONCE).map((key) => digests.seal(key));
    for (const { digest, messages } of await database.shared(scopeId, sealed))
      yield { key: digests.open(digest), json: messages };
  }
}

/** Keys of all of a scope's shared rows. */
export async function sharedKeys({ database, digests }: JournalParts, scopeId: number): Promise<readonly Digest[]> {
  return (await database.sharedDigests(scopeId)).map((digest) => digests.open(digest));
}

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
