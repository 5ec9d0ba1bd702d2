import {
  type BlockRegister,
  type Digest,
  digestOf,
  labelsIn,
  type RenderedWords,
  renderSection,
  type ScopeBounds,
  ScopeState,
  type StoredScope,
  type TurnId,
  WITHDRAWN,
} from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { conversationNumber, type DigestSeal, memoryHash, type SealedDigest } from "../database/digest-seal.js";
import type { JournalRecord, JournalScope, RecordKey, ScopeRow } from "../journal/journal-database.js";
import { decodedOf } from "../journal/journal-parts.js";
import type { JournalReads } from "../journal/journal-sql.js";
import { type NamedRequest, requestsIn } from "../journal/request-reading.js";
import { type ComposedRecord, readShared, SaidCodec, type SaidTurn, SharedMessage } from "../journal/said-codec.js";
import { ScopeCodec } from "../journal/scope-codec.js";
import { stateOf } from "../journal/turn-reading.js";

/** Bounds are enforced by the service, not by a check. */
const NO_BOUNDS: ScopeBounds = { maxIndexNodes: Number.POSITIVE_INFINITY, maxLoadedConversations: 1 };

/** Records that are read together. */
const RECORDS_AT_ONCE = 200;
/** Shared rows, and request ids, that are looked up together. */
const LOOKED_UP_AT_ONCE = 64;

/** What a check reads from a journal, in whatever database. */
export interface CheckedReads
  extends Pick<JournalReads, "load" | "list" | "read" | "shared" | "withRequests" | "responsesOf"> {
  /** Hashes of the memories by which walks find a scope. */
  memoriesOf(scopeId: number): Promise<readonly number[]>;
}

/**
 * Reads every record of a scope, folds its state, and compares them with each other and with what is stored beside them. All is read in the
 * caller's transaction. Rejects where a record or snapshot is damaged.
 */
export async function checkScope(
  reads: CheckedReads,
  digests: DigestSeal,
  { scopeId, scope }: ScopeRow,
): Promise<CheckedScope> {
  const records = new ScopeRecords(scopeId, await reads.load(scope), digests);
  for (let after = 0; ; ) {
    const keys = await reads.list(scopeId, { after, most: RECORDS_AT_ONCE });
    const read = await reads.read(keys.map(({ seq }) => seq));
    if (read.length !== keys.length) throw new Error("its index lists records that are missing");
    for (const record of read) records.take(record);
    const last = keys.at(-1);
    if (last === undefined) break;
    after = last.n;
  }
  return records.compared(reads);
}

/** A check's result for one scope. */
export interface CheckedScope {
  readonly requests: number;
  /** A line each; empty: none. */
  readonly problems: readonly string[];
}

/** A shared row that records refer to. */
interface Reference {
  readonly n: number;
  /** Null: instructions. */
  readonly turn: TurnId | null;
  readonly key: Digest;
}

/**
 * What one scope's records say, against each other and the state that they fold to. They are given in order. Throws where something is damaged.
 */
class ScopeRecords {
  readonly #said: SaidCodec;
  readonly #states: ScopeCodec;
  readonly #state: StoredScope;
  readonly #register: BlockRegister;
  readonly #problems: string[];
  readonly #keys: RecordKey[] = [];
  readonly #turns = new Map<TurnId, string | null>();
  readonly #references = new Map<SealedDigest, Reference>();
  readonly #sections = new Set<Digest>();
  /** Turns with the sections that they sent, as rendered. */
  readonly #sent: { readonly turn: TurnId; readonly section: Digest }[] = [];

  /** Folds the scope's state. */
  constructor(
    private readonly scopeId: number,
    private readonly stored: JournalScope,
    private readonly digests: DigestSeal,
  ) {
    this.#said = new SaidCodec(digests);
    this.#states = new ScopeCodec(digests);
    const folded = stateOf({ states: this.#states }, scopeId, stored);
    this.#state = { ...folded, register: { ...folded.register, forgotten: stored.forgotten } };
    const checked = new ScopeState(this.#state, () => 0, NO_BOUNDS);
    checked.index.check();
    checked.published.check();
    this.#register = checked.register;
    this.#problems = [...checkRows(this.#state)];
  }

  take(record: JournalRecord): void {
    append(this.#problems, this.#checkRecord(record));
  }

  /** Compares what is beside the records, when all were given. */
  async compared(reads: CheckedReads): Promise<CheckedScope> {
    const problems = this.#problems;
    const { scopeId } = this;
    await this.#checkShared(reads);
    for (const { turn, section } of this.#sent)
      if (!this.#sections.has(section)) problems.push(`turn ${turn} sent a section whose digest is missing`);
    const snapshot = this.stored.snapshot?.n ?? 0;
    if (snapshot > (this.stored.version?.commits ?? 0))
      problems.push(`its snapshot is of record ${snapshot}, which is missing`);
    append(problems, this.#checkMemories(new Set(await reads.memoriesOf(scopeId))));
    const requests = requestsIn(this.#keys);
    const found = new Set<number>();
    for (const ids of inPieces(requests.map(({ requestId }) => requestId)))
      for (const { seq } of await reads.withRequests({ scopeId }, ids)) found.add(seq);
    append(problems, this.#checkRequests(requests, await reads.responsesOf(scopeId), found));
    return { requests: requests.length, problems };
  }

  /** Messages that were erased are no longer referred to; instructions that were are. */
  async #checkShared(reads: CheckedReads): Promise<void> {
    const { scopeId } = this;
    for (const piece of inPieces([...this.#references.keys()])) {
      const found = new Map((await reads.shared(scopeId, piece)).map((row) => [row.digest, row.messages]));
      for (const digest of piece) {
        const { n, turn, key } = this.#references.get(digest) as Reference;
        const json = found.get(digest);
        if (json !== undefined && turn !== null) decodedOf({ scopeId, n }, () => readShared(key, json));
        else if (json === undefined && turn !== null)
          this.#problems.push(`turn ${turn} of record ${n} was given a message that is missing`);
        else if (json === undefined && this.stored.forgotten.length === 0)
          this.#problems.push(`record ${n} has instructions that are missing`);
      }
    }
  }

  *#checkRecord(record: JournalRecord): Generator<string> {
    const { changes, said, ...key } = record;
    const { n, turn, kind } = key;
    const { counters } = this.#state;
    const before = this.#keys.at(-1);
    this.#keys.push(key);
    if (before !== undefined && before.turn > turn) yield `record ${n} comes before the turns of record ${before.n}`;
    if (turn >= counters.nextTurn) yield `record ${n} knows turn ${turn}, which is past the scope's counter`;
    if (changes !== null) decodedOf(record, () => this.#states.decodeChanges(changes));
    if (said === null) {
      if (kind === "composed" || kind === "said" || kind === "reported") yield `record ${n} says nothing`;
      return;
    }
    if (kind === "composed" || kind === "said") {
      const composed = decodedOf(record, () => this.#said.decodeComposed(said));
      if (this.#said.encodeComposed(composed) !== said) yield `record ${n} has another form than it is written in`;
      yield* this.#checkTurns(record, composed);
    } else if (kind === "reported") decodedOf(record, () => this.#said.decodeReported(said));
    else for (const section of decodedOf(record, () => this.#said.decodeForgotten(said))) this.#sections.add(section);
  }

  *#checkTurns(key: RecordKey, { turns, sections, request }: ComposedRecord): Generator<string> {
    const register = this.#register;
    const told = this.#turns;
    const named = `record ${key.n}`;
    for (const section of sections) this.#sections.add(section);
    const isListed = turns.every(({ turn }) => turn.id <= key.turn && turn.id > key.turn - key.turns);
    if (!isListed || turns.length > key.turns) yield `${named} has other turns than its key says`;
    if ((request === null) !== (key.kind === "said")) yield `${named} is of another kind than what it says`;
    for (const said of turns) this.#refer(key.n, said);
    for (const { turn } of turns) {
      const { id, parent, conversationId, injection } = turn;
      const conversation = conversationId === null ? null : conversationNumber(conversationId, this.digests);
      if (conversation !== key.conversation) yield `turn ${id} is of another conversation than its record's`;
      if (parent !== null && !told.has(parent)) yield `turn ${id} continues turn ${parent}, which does not precede it`;
      else if (parent !== null && told.get(parent) !== conversationId)
        yield `turn ${id} continues turn ${parent} of another conversation`;
      if (told.has(id)) yield `turn ${id} is there twice`;
      told.set(id, conversationId);
      const missing = [...labelsIn(injection)].filter((label) => register.get(label) === undefined);
      if (missing.length > 0) yield `turn ${id} injects blocks [${missing.join("], [")}], which are missing`;
      else {
        const section = renderSection(injection, register.textOf);
        if (section !== "") this.#sent.push({ turn: id, section: digestOf(section) });
      }
    }
  }

  /** A record's own mistakes name it once; a row that several refer to is looked up for the first of them. */
  #refer(n: number, { turn, given }: SaidTurn): void {
    const refer = (key: Digest, of: TurnId | null) => {
      const sealed = this.digests.seal(key);
      if (!this.#references.has(sealed)) this.#references.set(sealed, { n, turn: of, key });
    };
    refer(turn.head, null);
    for (const message of given) if (message instanceof SharedMessage) refer(message.key, turn.id);
  }

  /** Walks have to find every memory that the scope has. */
  *#checkMemories(known: ReadonlySet<number>): Generator<string> {
    for (const { memoryId, label } of this.#state.register.versions)
      if (!known.has(memoryHash(memoryId, this.digests)))
        yield `the memory of block [${label}] is missing from those that walks find`;
  }

  *#checkRequests(
    requests: readonly NamedRequest[],
    responses: readonly { readonly requestId: string }[],
    found: ReadonlySet<number>,
  ): Generator<string> {
    const live = new Map<number, number>();
    for (const { composed, isEvicted } of requests)
      if (!isEvicted && composed.leaf !== null) live.set(composed.leaf, (live.get(composed.leaf) ?? 0) + 1);
    for (const { id, live: counted } of this.#state.nodes) {
      const most = live.get(id) ?? 0;
      if (counted > most) yield `index node ${id} counts ${counted} live requests of ${most}`;
    }
    const ids = new Set(requests.map(({ requestId }) => requestId));
    for (const { requestId } of responses)
      if (!ids.has(requestId)) yield `a response refers to request ${JSON.stringify(requestId)}, which is missing`;
    for (const { requestId, composed } of requests)
      if (!found.has(composed.seq)) yield `request ${JSON.stringify(requestId)} is not found by its id`;
  }
}

function inPieces<T>(list: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(list.length / LOOKED_UP_AT_ONCE);
  return Array.from({ length: count }, (_, at) => list.slice(at * LOOKED_UP_AT_ONCE, (at + 1) * LOOKED_UP_AT_ONCE));
}

/** Checks blocks, versions and index nodes against each other: every reference resolves, nothing is there twice. */
function* checkRows({ counters, bankedTokens, register, nodes }: StoredScope): Generator<string> {
  if (bankedTokens < 0) yield "its memory bank is below zero";
  const labels = new Set(register.blocks.map(({ label }) => label));
  const lengths = new Map(register.blocks.map(({ label, text }) => [label, text.length]));
  const digests = new Set<string>();
  for (const { label, textDigest, supersededBy } of register.blocks) {
    if (label >= counters.nextLabel) yield `block [${label}] has a label past the scope's counter`;
    if (digests.has(textDigest)) yield `block [${label}] has the same text as another block`;
    digests.add(textDigest);
    if (supersededBy !== null && supersededBy !== WITHDRAWN && !labels.has(supersededBy))
      yield `block [${label}] is superseded by a block that is missing`;
  }
  const current = new Map<string, number>();
  const held = new Set<number>();
  for (const { memoryId, label, current: isCurrent, rendered } of register.versions) {
    if (label !== WITHDRAWN && !labels.has(label))
      yield `a memory version refers to block [${label}], which is missing`;
    else if (rendered !== undefined && !isWithin(rendered, lengths.get(label) ?? 0))
      yield `block [${label}] is shorter than its memory's own words`;
    held.add(label);
    current.set(memoryId, (current.get(memoryId) ?? 0) + (isCurrent ? 1 : 0));
    if (register.forgotten.includes(memoryId)) yield `block [${label}] belongs to a forgotten memory`;
  }
  if ([...current.values()].some((count) => count !== 1)) yield "a memory does not have exactly one current version";
  for (const label of labels) if (!held.has(label)) yield `block [${label}] belongs to no memory`;
  for (const { id, run } of nodes) {
    if (id >= counters.nextNode) yield `index node ${id} has an id past the scope's counter`;
    for (const label of run)
      if (!labels.has(label)) yield `index node ${id} refers to block [${label}], which is missing`;
  }
}

function isWithin({ start, length }: RenderedWords, textLength: number): boolean {
  return start >= 0 && length > 0 && start + length <= textLength;
}
