import type Database from "better-sqlite3";
import type { DatabaseConnection } from "../database/connection.js";
import { prepare, prepareValue, type Statement } from "../database/statements.js";
import { memoryHash } from "../journal/keyed-numbers.js";
import { sumOfRecord, sumOfSnapshot } from "../journal/record-sum.js";
import { ScopeCodec } from "../journal/scope-codec.js";
import { type JournalRow, numberOf } from "../sqlite/journal-rows.js";
import { prepareWrites } from "../sqlite/write-statements.js";
import { type TableRecord, TableRecords } from "./table-records.js";
import type { NumberedScope, TableScopes } from "./table-scope.js";

/** Moves scopes from the tables into the journal. */
export class ScopeMove {
  readonly #records: TableRecords;
  readonly #states: ScopeCodec;
  readonly #writes: ReturnType<typeof prepareWrites>;
  /** Nothing where the number is taken. */
  readonly #appendAt: Statement<JournalRow>;
  readonly #version: Statement<number, number>;
  readonly #moved: Statement<number>;
  readonly #run: Database.Transaction<(scope: NumberedScope) => boolean>;

  /** @param onRecord called after each record */
  constructor(
    private readonly database: DatabaseConnection,
    private readonly tables: TableScopes,
    private readonly onRecord: () => void,
  ) {
    const { sqlite, digests } = database;
    this.#records = new TableRecords(tables, digests);
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
  run(scope: NumberedScope): boolean {
    return this.#run.immediate(scope);
  }

  #move({ scopeId, ...key }: NumberedScope): boolean {
    if ((this.#version.get(scopeId) ?? 0) === 0) return false;
    const { digests } = this.database;
    const state = this.tables.state(key);
    const records = new AppendedRecords(scopeId, this.#writes.append, this.#appendAt);
    for (const made of this.#records.of(scopeId, state)) {
      records.append(made);
      this.onRecord();
    }
    const hashes = [...new Set(state.register.versions.map(({ memoryId }) => memoryHash(memoryId, digests)))];
    if (hashes.length > 0) this.#writes.keepHashes.run({ seq: records.seq, scopeId, hashes: bytesOf(hashes) });
    for (const row of this.tables.shared(scopeId)) this.#writes.keepShared.run({ ...row, scopeId });
    const snapshot = { n: records.n, data: this.#states.encodeState(state) };
    this.#writes.keepSnapshot.run({ ...snapshot, scopeId, sum: sumOfSnapshot(scopeId, snapshot) });
    this.#moved.run(scopeId);
    return true;
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

  /** Under another `seq` where its own is taken: the tables' rows may have been numbered again between two scopes. */
  append({ record, seq }: TableRecord): void {
    const { scopeId } = this;
    const n = this.n + 1;
    const row = { ...record, scopeId, n, kind: numberOf(record.kind), sum: sumOfRecord(record, { scopeId, n }) };
    const isAdded = seq !== null && this.addAt.run({ ...row, seq }).changes === 1;
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
