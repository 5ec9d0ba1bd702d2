import type Database from "better-sqlite3";
import type { OpenDatabase } from "../database/open-database.js";
import type { ScopeKey } from "../database/scope-key.js";
import { prepare, prepareValue, type Statement } from "../database/statements.js";
import { parsedBody } from "../journal/damaged-record.js";
import type { NewRecord } from "../journal/journal-database.js";
import { conversationNumber, memoryHash } from "../journal/keyed-numbers.js";
import { packedReport } from "../journal/packed-report.js";
import { sumOfRecord, sumOfSnapshot } from "../journal/record-sum.js";
import { SaidCodec } from "../journal/said-codec.js";
import { ScopeCodec } from "../journal/scope-codec.js";
import { readAnswer } from "../records/rows.js";
import { type JournalRow, numberOf } from "../sqlite/journal-rows.js";
import { prepareWrites } from "../sqlite/write-statements.js";
import { SentSections } from "./sent-sections.js";
import type { TableScopes, TableTurn } from "./table-scope.js";

/** Numbers that each turn's records have room for: what was composed, a report, an eviction. */
const SEQS_OF_A_TURN = 3;

const NOTHING = { turns: 0, conversation: null, requestId: null, leaf: null, changes: null, said: null } as const;

/** Moves scopes from the tables into the journal. */
export class ScopeMove {
  readonly #said: SaidCodec;
  readonly #states: ScopeCodec;
  readonly #writes: ReturnType<typeof prepareWrites>;
  /** Nothing where the number is taken. */
  readonly #appendAt: Statement<JournalRow>;
  readonly #version: Statement<number, number>;
  readonly #moved: Statement<number>;
  readonly #run: Database.Transaction<(scope: ScopeKey & { readonly scopeId: number }) => boolean>;

  constructor(
    private readonly database: OpenDatabase,
    private readonly tables: TableScopes,
  ) {
    const { sqlite, digests } = database;
    this.#said = new SaidCodec(digests);
    this.#states = new ScopeCodec(digests);
    this.#writes = prepareWrites(sqlite);
    this.#appendAt = prepare(
      sqlite,
      `insert or ignore into journal
         (seq, scope_id, n, kind, at, turn, turns, conversation, request_id, leaf, sum, changes, said)
       values (@seq, @scopeId, @n, @kind, @at, @turn, @turns, @conversation, @requestId, @leaf, @sum, @changes, @said)`,
    );
    this.#version = prepareValue(sqlite, "select table_version from users where scope_id = ?");
    this.#moved = prepare(sqlite, "update users set table_version = 0 where scope_id = ?");
    this.#run = sqlite.transaction((scope) => this.#move(scope));
  }

  /** Moves a scope in one transaction; false where another process did. */
  run(scope: ScopeKey & { readonly scopeId: number }): boolean {
    return this.#run.immediate(scope);
  }

  #move({ scopeId, ...key }: ScopeKey & { readonly scopeId: number }): boolean {
    if ((this.#version.get(scopeId) ?? 0) === 0) return false;
    const { digests } = this.database;
    const state = this.tables.state(key);
    const sent = new SentSections(state, this.tables.sections(scopeId));
    const records = new AppendedRecords(scopeId, this.#writes.append, this.#appendAt);
    let turn = 0;
    for (const told of this.tables.turns(scopeId)) {
      turn = told.said.turn.id;
      this.#appendTurn(records, told, sent);
    }
    if (sent.left.length > 0)
      records.append({ ...NOTHING, kind: "forgotten", at: 0, turn, said: this.#said.encodeForgotten(sent.left) });
    const hashes = [...new Set(state.register.versions.map(({ memoryId }) => memoryHash(memoryId, digests)))];
    // Memories are known by a record, and turns may all have expired.
    if (records.n === 0 && hashes.length > 0) records.append({ ...NOTHING, kind: "changed", at: 0, turn });
    if (hashes.length > 0) this.#writes.keepHashes.run({ seq: records.seq, scopeId, hashes: bytesOf(hashes) });
    for (const head of this.tables.heads(scopeId)) this.#writes.keepHead.run({ ...head, scopeId });
    const snapshot = { n: records.n, data: this.#states.encodeState(state) };
    this.#writes.keepSnapshot.run({ ...snapshot, scopeId, sum: sumOfSnapshot(scopeId, snapshot) });
    this.#moved.run(scopeId);
    return true;
  }

  /** Each turn in a record of its own, with its request; then what was reported of that. */
  #appendTurn(records: AppendedRecords, { row, said, at, requests }: TableTurn, sent: SentSections): void {
    const { turn } = said;
    const conversation =
      turn.conversationId === null ? null : conversationNumber(turn.conversationId, this.database.digests);
    const sections = sent.of(turn);
    const shared = { ...NOTHING, at, turn: turn.id, turns: 1, conversation };
    const seq = SEQS_OF_A_TURN * row;
    const [request] = requests;
    if (requests.length > 1) throw new Error("a turn has one request");
    if (request === undefined) {
      const body = this.#said.encodeComposed({ turns: [said], sections, request: null });
      records.append({ ...shared, kind: "said", said: body }, seq);
      return;
    }
    const { requestId, leaf, body, answer, observed, evicted } = request;
    const asked = { body: this.database.digests.open(body), answer: readAnswer(answer) };
    const composed = this.#said.encodeComposed({ turns: [said], sections, request: asked });
    records.append({ ...shared, kind: "composed", requestId, leaf, said: composed }, seq);
    const later = { ...NOTHING, at: 0, turn: turn.id, requestId };
    if (observed !== null) {
      const report = this.#said.encodeReported(parsedBody("a report", observed, packedReport));
      records.append({ ...later, kind: "reported", said: report }, seq + 1);
    }
    if (evicted === 1) records.append({ ...later, kind: "evicted" }, seq + 2);
  }
}

/** A scope's records, as they are appended. */
class AppendedRecords {
  /** The last record's number and `seq`; 0: none. */
  n = 0;
  seq = 0;

  constructor(
    private readonly scopeId: number,
    private readonly add: ReturnType<typeof prepareWrites>["append"],
    private readonly addAt: Statement<JournalRow>,
  ) {}

  /**
   * @param seq so that records of all scopes are in the order of time; another where it is taken, as the tables' rows may have been numbered
   * again between two scopes
   */
  append(record: NewRecord, seq?: number): void {
    const { scopeId } = this;
    const n = this.n + 1;
    const row = { ...record, scopeId, n, kind: numberOf(record.kind), sum: sumOfRecord({ ...record, scopeId, n }) };
    const isAdded = seq !== undefined && this.addAt.run({ ...row, seq }).changes === 1;
    this.seq = isAdded ? seq : Number(this.add.run(row).lastInsertRowid);
    this.n = n;
  }
}

function bytesOf(hashes: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * hashes.length);
  hashes.forEach((hash, at) => {
    bytes.writeUInt32BE(hash, 4 * at);
  });
  return bytes;
}
