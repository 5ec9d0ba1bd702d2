/*
 * A service on PostgreSQL that commits a group by one insert of its records, and does nothing else: no locks, no checks, no snapshots. What
 * any store of these records costs behind the driver, at least, for `bench:load-pairs`. It keeps no promise. Arguments: those of `memstem`.
 */

import type { JournalUnit, WrittenUnit } from "../src/store/journal/journal-database.js";
import type { Connections } from "../src/store/postgres/connections.js";

const load = (path: string) => import(new URL(`../dist/${path}`, import.meta.url).href);
const { GroupWriter } = (await load(
  "store/postgres/group-writer.js",
)) as typeof import("../src/store/postgres/group-writer.js");
const { Gathering } = (await load(
  "store/postgres/gathering.js",
)) as typeof import("../src/store/postgres/gathering.js");
const { ScopeNumbers } = (await load(
  "store/postgres/scope-numbers.js",
)) as typeof import("../src/store/postgres/scope-numbers.js");
const { numberedRecords } = (await load(
  "store/postgres/unit-changes.js",
)) as typeof import("../src/store/postgres/unit-changes.js");
const { numberOf } = (await load("store/postgres/rows.js")) as typeof import("../src/store/postgres/rows.js");

/** Most units per insert, as in the service. */
const MOST_UNITS = 32;
const COLUMNS = [
  "scope_id",
  "n",
  "kind",
  "turn",
  "turns",
  "conversation",
  "request_id",
  "leaf",
  "at",
  "sum",
  "changes",
  "said",
];

interface Waiting {
  readonly unit: JournalUnit;
  readonly done: (written: WrittenUnit) => void;
}

/** Inserts what came while the insert before was under way, in groups as large as the service's. */
class BareWriter {
  readonly #waiting: Waiting[] = [];
  readonly #gathering = new Gathering(() => this.#begin());
  readonly #numbers;
  #isUnderWay = false;

  constructor(private readonly connections: Connections) {
    this.#numbers = new ScopeNumbers(connections);
  }

  write(units: readonly JournalUnit[]): Promise<readonly WrittenUnit[]> {
    const written = units.map((unit) => new Promise<WrittenUnit>((done) => this.#waiting.push({ unit, done })));
    this.#begin();
    return Promise.all(written);
  }

  #begin(): void {
    if (this.#isUnderWay || this.#waiting.length === 0 || this.#gathering.isOn(this.#waiting.length)) return;
    this.#isUnderWay = true;
    setImmediate(() => void this.#insertGroup());
  }

  async #insertGroup(): Promise<void> {
    const group = this.#waiting.splice(0, MOST_UNITS).map((one) => ({ ...one, ...this.#numbered(one.unit) }));
    const values = group.flatMap(({ scopeId, records }) =>
      records.flatMap(({ record, n, sum }) => {
        const { kind, turn, turns, conversation, requestId, leaf, at, changes, said } = record;
        return [scopeId, n, numberOf(kind), turn, turns, conversation, requestId, leaf, at, sum, changes, said];
      }),
    );
    const rows = Array.from({ length: values.length / COLUMNS.length }, (_, row) => {
      const places = COLUMNS.map((_column, at) => `$${row * COLUMNS.length + at + 1}`);
      return `(${places.join()})`;
    });
    const text = `insert into memstem.journal (${COLUMNS.join()}) values ${rows.join()}`;
    await this.connections.write((client) => client.query({ name: `bare_${rows.length}`, text, values }));
    for (const { done, scopeId, records } of group) {
      const last = records.at(-1);
      done({ version: { scopeId, commits: last?.n ?? 0, sum: last?.sum } });
    }
    this.#isUnderWay = false;
    this.#gathering.begin(group.length, this.#waiting.length);
    this.#begin();
  }

  #numbered(unit: JournalUnit) {
    // Where none is at hand yet, any that nobody has.
    const scopeId = unit.version?.scopeId ?? this.#numbers.take() ?? -Math.ceil(Math.random() * 2 ** 40);
    return { scopeId, records: numberedRecords(unit, scopeId, unit.version?.commits ?? 0) };
  }
}

const writers = new WeakMap<object, BareWriter>();
GroupWriter.prototype.write = function (this: object, units) {
  const { connections } = this as { readonly connections: Connections };
  const writer = writers.get(this) ?? new BareWriter(connections);
  writers.set(this, writer);
  return writer.write(units);
};
await load("cli/main.js");
