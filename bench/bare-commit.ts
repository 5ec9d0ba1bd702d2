/*
 * The commit of `bare-postgres.ts`, in place of `group-commit.ts`: one insert of a group's records, and nothing else. No locks, no checks,
 * no snapshots, no other rows. It keeps no promise.
 */

import type { commitGroup as commit } from "../src/store/postgres/group-commit.js";

const load = (path: string) => import(new URL(`../dist/store/postgres/${path}`, import.meta.url).href);
const { numberedRecords } = (await load("unit-changes.js")) as typeof import("../src/store/postgres/unit-changes.js");
const { numberOf } = (await load("rows.js")) as typeof import("../src/store/postgres/rows.js");

const COLUMNS = "scope_id n kind turn turns conversation request_id leaf at sum changes said".split(" ");

export const commitGroup: typeof commit = async (client, units, _isTogether, numbers, onSending) => {
  const group = units.map(({ unit }) => {
    // Where no number is at hand yet, any that nobody has.
    const scopeId = unit.version?.scopeId ?? numbers.take() ?? -Math.ceil(Math.random() * 2 ** 40);
    return { scopeId, records: numberedRecords(unit, scopeId, unit.version?.commits ?? 0) };
  });
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
  onSending();
  await client.query({ name: `bare_${rows.length}`, text, values });
  return group.map(({ scopeId, records }) => {
    const last = records.at(-1);
    return { version: { scopeId, commits: last?.n ?? 0, sum: last?.sum } };
  });
};
