import {
  type ChatMessage,
  type ConversationId,
  type Digest,
  EMPTY_SCOPE,
  type MemoryId,
  type Scope,
  ScopeFolding,
  type StoredScope,
  type Turn,
  type TurnId,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { isSameVersion, type LoadedScope, type ScopesFound, type StoredHistory } from "../api/store.js";
import { conversationNumber, memoryHash } from "../database/digest-seal.js";
import { JournalVersion } from "./commits.js";
import {
  CONVERSATION_PAGE,
  type JournalRecord,
  type JournalScope,
  type RecordKey,
  WITH_TURNS,
} from "./journal-database.js";
import {
  composedIn,
  decodedOf,
  type JournalParts,
  type ReadMessages,
  readInPieces,
  SharedTexts,
  turnsIn,
} from "./journal-parts.js";
import { type ComposedRecord, type GivenTurn, messagesInRow, type RecordedMessage } from "./said-codec.js";

/** What was said in a conversation from its epoch's first turn to its newest one; nothing of it was erased. */
export interface SaidPath {
  /** The instructions of the newest prompt. */
  readonly head: readonly ChatMessage[];
  /** First to last. */
  readonly turns: readonly GivenTurn[];
}

/** Whether a record that was read has turns; they may have been taken out since it was listed. */
export function hasTurns({ kind }: Pick<RecordKey, "kind">): boolean {
  return WITH_TURNS.includes(kind);
}

/** A record with turns, decoded; what it has besides them on first use, as a conversation's turns are read without. */
export class TurnRecord implements ComposedRecord {
  readonly turns: ComposedRecord["turns"];
  #whole: ComposedRecord | null = null;

  constructor(
    private readonly parts: JournalParts,
    readonly key: JournalRecord,
  ) {
    this.turns = turnsIn(parts, key);
  }

  get sections(): ComposedRecord["sections"] {
    return this.#read().sections;
  }

  get request(): ComposedRecord["request"] {
    return this.#read().request;
  }

  #read(): ComposedRecord {
    this.#whole ??= composedIn(this.parts, this.key);
    return this.#whole;
  }
}

/** A turn, with the record that it stands in. */
export interface FoundTurn {
  readonly record: TurnRecord;
  readonly turn: Turn;
  /** What it was given, as its record has it: see {@link TurnReading.givenOf}. */
  readonly said: readonly RecordedMessage[];
}

/** How far back a conversation was read. */
interface ReadBack {
  before: number;
  isDone: boolean;
}

/** Reads turns of one scope; each record is read once. To be dropped with the question that it answers. */
export class TurnReading {
  readonly #records = new Map<number, TurnRecord>();
  readonly #turns = new Map<TurnId, FoundTurn>();
  readonly #readBack = new Map<number, ReadBack>();
  readonly #texts: SharedTexts;
  #newest: readonly JournalRecord[] | null = null;

  constructor(
    private readonly parts: JournalParts,
    readonly scopeId: number,
  ) {
    this.#texts = new SharedTexts(parts, scopeId);
  }

  /** Takes the newest records of a conversation, which were read with its scope, as {@link newestOf} lists them. */
  begin(newest: readonly JournalRecord[]): void {
    for (const record of newest) this.#take(record);
    this.#newest = newest;
  }

  /** Records by their keys, in that order; those that are gone are left out. */
  async recordsOf(keys: readonly RecordKey[]): Promise<readonly TurnRecord[]> {
    const missing = keys.filter(({ seq }) => !this.#records.has(seq)).map(({ seq }) => seq);
    await readInPieces(this.parts.database, missing, (record) => this.#take(record));
    return keys.flatMap(({ seq }) => this.#records.get(seq) ?? []);
  }

  /** A turn by its id; null where there is none. */
  async turn(id: TurnId): Promise<FoundTurn | null> {
    if (!this.#turns.has(id)) await this.recordsOf(await this.parts.database.withTurns(this.scopeId, [id]));
    return this.#turns.get(id) ?? null;
  }

  /** The turn that another one continues; null where it is gone, or continues none. */
  async before({ turn, record }: FoundTurn): Promise<FoundTurn | null> {
    const { parent } = turn;
    if (parent === null) return null;
    const { conversation, n } = record.key;
    if (conversation !== null && !this.#turns.has(parent)) await this.#readBackTo(parent, conversation, n);
    return this.turn(parent);
  }

  /** A turn and those that it continues, newest first. Null in place of one that is gone, which ends it. */
  async *upFrom(newest: FoundTurn | null): AsyncGenerator<FoundTurn | null, void, undefined> {
    for (let found = newest; ; found = await this.before(found)) {
      yield found;
      if (found === null || found.turn.parent === null) return;
    }
  }

  /** The turns of a conversation in pages of so many records, newest first; each page's turns newest first. */
  async *newestOf(id: ConversationId, most = CONVERSATION_PAGE): AsyncGenerator<readonly FoundTurn[], void, undefined> {
    const conversation = conversationNumber(id, this.parts.digests);
    for (let before: number | undefined; ; ) {
      const keys = (before === undefined && this.#newest) || (await this.#page(conversation, before, most));
      const records = await this.recordsOf(keys);
      // Another conversation may have this number too.
      const turns = records.flatMap(({ turns: own }) => own.map(({ turn }) => turn)).sort((a, b) => b.id - a.id);
      yield turns.filter(({ conversationId }) => conversationId === id).map((turn) => this.#known(turn.id));
      before = keys.at(-1)?.n;
      if (keys.length < most) return;
    }
  }

  /** What some turns were given, the texts that they share read together; null for each message that was erased. */
  givenOf(turns: readonly Pick<FoundTurn, "said">[]): Promise<readonly ReadMessages[]> {
    return this.#texts.read(turns.map(({ said }) => said));
  }

  /** The instructions with a digest; null where they were erased. */
  async head(digest: Digest): Promise<readonly ChatMessage[] | null> {
    const [row] = await this.parts.database.shared(this.scopeId, [this.parts.digests.seal(digest)]);
    return row === undefined ? null : wholeOf(decodedOf({ scopeId: this.scopeId }, () => messagesInRow(row.messages)));
  }

  #take(record: JournalRecord): void {
    if (!hasTurns(record)) return;
    const found = new TurnRecord(this.parts, record);
    this.#records.set(record.seq, found);
    for (const { turn, given } of found.turns) this.#turns.set(turn.id, { record: found, turn, said: given });
  }

  #known(id: TurnId): FoundTurn {
    const found = this.#turns.get(id);
    if (found === undefined) throw new Error("a turn that was read is kept");
    return found;
  }

  async #readBackTo(turn: TurnId, conversation: number, n: number): Promise<void> {
    const back = keptIn(this.#readBack, conversation, () => ({ before: n, isDone: false }));
    while (!back.isDone && !this.#turns.has(turn)) {
      const keys = await this.#page(conversation, back.before);
      await this.recordsOf(keys);
      const last = keys.at(-1);
      back.isDone = keys.length < CONVERSATION_PAGE;
      if (last === undefined) return;
      back.before = last.n;
      // Not among this conversation's.
      if (last.turn <= turn) return;
    }
  }

  #page(conversation: number, before: number | undefined, most = CONVERSATION_PAGE): Promise<readonly RecordKey[]> {
    const filter = { kinds: WITH_TURNS, conversation, newestFirst: true, most };
    return this.parts.database.list(this.scopeId, before === undefined ? filter : { ...filter, before });
  }
}

/** Messages of which none was erased, or null. */
export function wholeOf(messages: ReadMessages): readonly ChatMessage[] | null {
  return messages.includes(null) ? null : (messages as readonly ChatMessage[]);
}

/** The last turns of a conversation that are loaded, and those of its newest epoch: a client may return to a branch that it left. */
const MOST_TURNS_LOADED = 1_000;

/** See `Store.loadConversation`. */
export async function readConversation(reading: TurnReading, id: ConversationId): Promise<Turn[]> {
  const turns: Turn[] = [];
  for await (const page of reading.newestOf(id)) {
    for (const { turn } of page) turns.push(turn);
    const [newest] = turns;
    const oldest = turns.at(-1);
    const goesBack = newest !== undefined && oldest !== undefined && oldest.id <= newest.epoch;
    if (turns.length >= MOST_TURNS_LOADED && goesBack) break;
  }
  const from = Math.min(turns[0]?.epoch ?? 0, turns[MOST_TURNS_LOADED - 1]?.id ?? 0);
  return turns.filter((turn) => turn.id >= from).reverse();
}

/** What is stored of a conversation's history. */
export interface ReadHistory {
  readonly history: StoredHistory;
  /** Null where a part of it is gone. */
  readonly path: SaidPath | null;
}

/**
 * See `Store.findHistory`. Follows the newest turn's parents, so a branch that was left is not in it; ends at a message that was erased, or
 * a turn that is gone.
 */
export async function readHistory(reading: TurnReading, id: ConversationId): Promise<ReadHistory | null> {
  const newest = await newestTurn(reading, id);
  if (newest === null) return null;
  const found: FoundTurn[] = [];
  let isWhole = true;
  for await (const one of reading.upFrom(newest)) {
    isWhole = one !== null && !one.said.includes(null);
    if (one === null || !isWhole) break;
    found.push(one);
  }
  const [all, head] = await Promise.all([reading.givenOf(found), reading.head(newest.turn.head)]);
  const turns: SaidPath["turns"][number][] = [];
  for (const [at, read] of all.entries()) {
    const given = wholeOf(read);
    const turn = found[at]?.turn;
    isWhole &&= given !== null;
    if (given === null || turn === undefined) break;
    turns.push({ turn, given });
  }
  turns.reverse();
  const history = historyOf({ head, turns }, isWhole);
  return { history, path: isWhole && head !== null ? { head, turns } : null };
}

/** @param isWhole whether the turns go back to their epoch's first */
export function historyOf(
  { head, turns }: Omit<SaidPath, "head"> & { readonly head: SaidPath["head"] | null },
  isWhole = true,
): StoredHistory {
  // A turn that was only said again was not sent.
  const sent = turns.filter(({ turn }) => turn.promptTokens > 0);
  return {
    head,
    newest: turns.at(-1)?.given.length ?? 0,
    hasOwnHead: turns[0]?.given.length === 0,
    messages: turns.flatMap(({ given }) => given),
    isWhole,
    prompts: sent.map(({ turn }) => ({ total: turn.promptTokens, computed: turn.computedTokens })),
    behind: turns.findLast(({ turn }) => turn.behind !== null)?.turn.behind ?? null,
  };
}

async function newestTurn(reading: TurnReading, id: ConversationId): Promise<FoundTurn | null> {
  // Mostly it is the first, and of a window all that is read.
  for await (const [newest] of reading.newestOf(id, 1)) if (newest !== undefined) return newest;
  return null;
}

/** See `Store.loadScope`. */
export async function loadScope(
  parts: JournalParts,
  scope: Scope,
  conversationId: ConversationId | null = null,
): Promise<LoadedScope> {
  const number = conversationId === null ? undefined : conversationNumber(conversationId, parts.digests);
  const stored = await parts.database.load(scope, number);
  const { version, deletions, newestAt } = stored;
  if (version === null)
    return { scope: withForgotten(EMPTY_SCOPE, stored), version, deletions, newestAt, conversation: [] };
  const state = withForgotten(stateOf(parts, version.scopeId, stored), stored);
  const { snapshot, behind } = stored;
  const since = {
    records: behind.length,
    length: behind.reduce((length, { changes }) => length + (changes?.length ?? 0), 0),
    snapshotLength: snapshot?.data.length ?? 0,
  };
  const loaded = { scope: state, version: new JournalVersion(version, since), deletions, newestAt };
  if (conversationId === null) return { ...loaded, conversation: null };
  const reading = new TurnReading(parts, version.scopeId);
  reading.begin(stored.conversation);
  const conversation = await conversationOf(parts, scope, stored, reading, conversationId);
  return { ...loaded, conversation };
}

/** Null where a long one, which is read in several transactions, has changed meanwhile. */
async function conversationOf(
  parts: JournalParts,
  scope: Scope,
  { version, conversation: newest }: JournalScope,
  reading: TurnReading,
  id: ConversationId,
): Promise<readonly Turn[] | null> {
  const turns = await readConversation(reading, id);
  const isOfVersion =
    newest.length < CONVERSATION_PAGE || isSameVersion(await parts.database.versionOf(scope), version);
  return isOfVersion ? turns : null;
}

/** A scope's state: its snapshot, and the changes after it. Forgotten memories are not in it. */
function stateOf(
  { states }: Pick<JournalParts, "states">,
  scopeId: number,
  { snapshot, behind }: JournalScope,
): StoredScope {
  const before =
    snapshot === null ? EMPTY_SCOPE : decodedOf({ scopeId, n: snapshot.n }, () => states.decodeState(snapshot.data));
  if (behind.length === 0) return before;
  const folding = new ScopeFolding(before);
  for (const { n, changes } of behind)
    if (changes !== null) folding.take(decodedOf({ scopeId, n }, () => states.decodeChanges(changes)));
  return folding.stored();
}

/** A memory is forgotten with every agent, so that is not each scope's own to say. */
function withForgotten(state: StoredScope, { forgotten }: JournalScope): StoredScope {
  return { ...state, register: { ...state.register, forgotten } };
}

/** See `Store.scopesWithMemory`. Of the scopes that may have it, those are loaded: another memory may have its hash. */
export async function findScopesWithMemory(
  parts: JournalParts,
  tenant: string,
  memoryId: MemoryId,
  after: number,
): Promise<ScopesFound> {
  const hash = memoryHash(memoryId, parts.digests);
  const { scopes: candidates, next } = await parts.database.withMemory(tenant, hash, after);
  const scopes: ScopesFound["scopes"][number][] = [];
  for (const { scope } of candidates) {
    const { register } = (await loadScope(parts, scope)).scope;
    if (register.versions.some((version) => version.memoryId === memoryId)) scopes.push(scope);
  }
  return { scopes, next };
}
