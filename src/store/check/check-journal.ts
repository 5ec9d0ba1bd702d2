import {
  type BlockRegister,
  type Digest,
  digestOf,
  type IndexNode,
  labelsIn,
  renderSection,
  ScopeState,
  type StoredScope,
  type TurnId,
} from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import type { DatabaseConnection } from "../database/connection.js";
import type { JournalRecord, RecordKey, ScopeRow } from "../journal/journal-database.js";
import { decodedOf } from "../journal/journal-parts.js";
import { conversationNumber, memoryHash } from "../journal/keyed-numbers.js";
import { requestsIn } from "../journal/named-requests.js";
import { type ComposedRecord, SaidCodec, type SaidTurn } from "../journal/said-codec.js";
import { ScopeCodec } from "../journal/scope-codec.js";
import { stateOf } from "../journal/scope-loading.js";
import { readShared, SharedMessage } from "../journal/shared-message.js";
import { JournalReads } from "../sqlite/journal-reads.js";
import { checkRows } from "./check-scope.js";
import { NO_BOUNDS } from "./no-bounds.js";

/** Records that are read together. */
const RECORDS_AT_ONCE = 200;

/** What one scope's records say, as far as other records and its state have to agree with it. */
interface Told {
  readonly keys: RecordKey[];
  /** Whether instructions may be gone: those that quote a forgotten memory are. */
  readonly hasForgotten: boolean;
  readonly turns: Map<TurnId, string | null>;
  /** Shared rows that were read, so that each is read once. */
  readonly shared: Set<Digest>;
  readonly sections: Set<Digest>;
  /** Turns with the sections that they sent, as rendered. */
  readonly sent: { readonly turn: TurnId; readonly section: Digest }[];
}

/** Checks scopes of the journal, in the caller's transaction. */
export class JournalCheck {
  readonly #reads: JournalReads;
  readonly #said: SaidCodec;
  readonly #states: ScopeCodec;

  constructor(private readonly database: DatabaseConnection) {
    this.#reads = new JournalReads(database);
    this.#said = new SaidCodec(database.digests);
    this.#states = new ScopeCodec(database.digests);
  }

  /** Reads every record of a scope, folds its state, and compares them. Throws where a record or snapshot is damaged. */
  check({ scopeId, scope }: ScopeRow): { readonly requests: number; readonly problems: readonly string[] } {
    const stored = this.#reads.load(scope);
    const folded = stateOf({ states: this.#states }, scopeId, stored);
    const state = { ...folded, register: { ...folded.register, forgotten: stored.forgotten } };
    const checked = new ScopeState(state, () => 0, NO_BOUNDS);
    checked.index.check();
    checked.published.check();
    const problems = [...checkRows(state)];
    const hasForgotten = stored.forgotten.length > 0;
    const told: Told = { keys: [], hasForgotten, turns: new Map(), shared: new Set(), sections: new Set(), sent: [] };
    for (const record of this.#records(scopeId))
      append(problems, this.#checkRecord(record, told, checked.register, state));
    for (const { turn, section } of told.sent)
      if (!told.sections.has(section)) problems.push(`turn ${turn} sent a section whose digest is missing`);
    const snapshot = stored.snapshot?.n ?? 0;
    if (snapshot > (stored.version?.commits ?? 0))
      problems.push(`its snapshot is of record ${snapshot}, which is missing`);
    append(problems, this.#checkMemories(scopeId, state));
    append(problems, this.#checkRequests(scopeId, told.keys, state.nodes));
    return { requests: requestsIn(told.keys).length, problems };
  }

  *#records(scopeId: number): Generator<JournalRecord> {
    for (let after = 0; ; ) {
      const keys = this.#reads.list(scopeId, { after, most: RECORDS_AT_ONCE });
      const records = this.#reads.read(keys.map(({ seq }) => seq));
      if (records.length !== keys.length) throw new Error("its index lists records that are missing");
      yield* records;
      const last = keys.at(-1);
      if (last === undefined) return;
      after = last.n;
    }
  }

  *#checkRecord(
    record: JournalRecord,
    told: Told,
    register: BlockRegister,
    { counters }: StoredScope,
  ): Generator<string> {
    const { n, turn, changes, said, kind } = record;
    const before = told.keys.at(-1);
    told.keys.push(record);
    if (before !== undefined && before.turn > turn) yield `record ${n} comes before the turns of record ${before.n}`;
    if (turn >= counters.nextTurn) yield `record ${n} knows turn ${turn}, which is past the scope's counter`;
    if (changes !== null) decodedOf(record, () => this.#states.decodeChanges(changes));
    if (said === null) {
      if (kind === "composed" || kind === "said" || kind === "reported") yield `record ${n} says nothing`;
      return;
    }
    if (kind === "composed" || kind === "said") {
      const composed = decodedOf(record, () => this.#said.decodeComposed(said));
      yield* this.#checkTurns(record, composed, told, register);
    } else if (kind === "reported") decodedOf(record, () => this.#said.decodeReported(said));
    else for (const section of decodedOf(record, () => this.#said.decodeForgotten(said))) told.sections.add(section);
  }

  *#checkTurns(
    key: RecordKey,
    { turns, sections, request }: ComposedRecord,
    told: Told,
    register: BlockRegister,
  ): Generator<string> {
    const { digests } = this.database;
    const named = `record ${key.n}`;
    for (const section of sections) told.sections.add(section);
    const isListed = turns.every(({ turn }) => turn.id <= key.turn && turn.id > key.turn - key.turns);
    if (!isListed || turns.length > key.turns) yield `${named} has other turns than its key says`;
    if ((request === null) !== (key.kind === "said")) yield `${named} is of another kind than what it says`;
    const heads = new Set(turns.map(({ turn }) => digests.seal(turn.head)));
    if (!told.hasForgotten && this.#reads.shared(key.scopeId, [...heads]).length < heads.size)
      yield `${named} has instructions that are missing`;
    yield* this.#checkMessages(key, turns, told);
    for (const { turn } of turns) {
      const { id, parent, conversationId, injection } = turn;
      const conversation = conversationId === null ? null : conversationNumber(conversationId, digests);
      if (conversation !== key.conversation) yield `turn ${id} is of another conversation than its record's`;
      if (parent !== null && !told.turns.has(parent))
        yield `turn ${id} continues turn ${parent}, which does not precede it`;
      else if (parent !== null && told.turns.get(parent) !== conversationId)
        yield `turn ${id} continues turn ${parent} of another conversation`;
      if (told.turns.has(id)) yield `turn ${id} is there twice`;
      told.turns.set(id, conversationId);
      const missing = [...labelsIn(injection)].filter((label) => register.get(label) === undefined);
      if (missing.length > 0) yield `turn ${id} injects blocks [${missing.join("], [")}], which are missing`;
      else {
        const section = renderSection(injection, register.textOf);
        if (section !== "") told.sent.push({ turn: id, section: digestOf(section) });
      }
    }
  }

  /** Messages that were erased are no longer referred to. */
  *#checkMessages({ n, scopeId }: RecordKey, turns: readonly SaidTurn[], { shared }: Told): Generator<string> {
    const { digests } = this.database;
    for (const { turn, given } of turns)
      for (const message of given) {
        if (!(message instanceof SharedMessage) || shared.has(message.key)) continue;
        shared.add(message.key);
        const [row] = this.#reads.shared(scopeId, [digests.seal(message.key)]);
        if (row === undefined) yield `turn ${turn.id} of record ${n} was given a message that is missing`;
        else decodedOf({ scopeId, n }, () => readShared(message.key, row.messages));
      }
  }

  /** Walks have to find every memory that the scope has. */
  *#checkMemories(scopeId: number, { register }: StoredScope): Generator<string> {
    const known = new Set(this.#reads.memoriesOf(scopeId));
    for (const { memoryId, label } of register.versions)
      if (!known.has(memoryHash(memoryId, this.database.digests)))
        yield `the memory of block [${label}] is missing from those that walks find`;
  }

  *#checkRequests(scopeId: number, keys: readonly RecordKey[], nodes: readonly IndexNode[]): Generator<string> {
    const requests = requestsIn(keys);
    const live = new Map<number, number>();
    for (const { composed, isEvicted } of requests)
      if (!isEvicted && composed.leaf !== null) live.set(composed.leaf, (live.get(composed.leaf) ?? 0) + 1);
    for (const { id, live: counted } of nodes) {
      const most = live.get(id) ?? 0;
      if (counted > most) yield `index node ${id} counts ${counted} live requests of ${most}`;
    }
    const ids = new Set(requests.map(({ requestId }) => requestId));
    for (const { requestId } of this.#reads.responsesOf(scopeId))
      if (!ids.has(requestId)) yield `a response refers to request ${JSON.stringify(requestId)}, which is missing`;
    for (const { requestId, composed } of requests) {
      const found = this.#reads.withRequests({ scopeId }, [requestId]);
      if (!found.some(({ seq }) => seq === composed.seq))
        yield `request ${JSON.stringify(requestId)} is not found by its id`;
    }
  }
}
