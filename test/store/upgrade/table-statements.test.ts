import type Database from "better-sqlite3";
import { getTableColumns } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { afterAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { scopes } from "../../../src/store/database/schema.js";
import * as tables from "../../../src/store/upgrade/table-schema.js";
import { prepareStateReads, SELECT_REQUESTS, SELECT_TURNS } from "../../../src/store/upgrade/table-statements.js";

const { sqlite, orm } = openDatabase(":memory:");
afterAll(() => sqlite.close());

const NAME = { tenant: "t", userId: "u", agentId: "a" };
const reads = prepareStateReads(sqlite);

/** A row with another value in each column. */
function rowOf(table: SQLiteTable, given: object): Record<string, unknown> {
  const columns = Object.entries(getTableColumns(table));
  const values = columns.map(([field, { dataType, enumValues }], at) => {
    if (dataType === "boolean") return [field, true];
    if (dataType === "number") return [field, 100 + at];
    return [field, enumValues?.[0] ?? `${field} of it`];
  });
  return { ...Object.fromEntries(values), scopeId: 1, ...given };
}

/** As SQLite gives it. */
const flagged = ({ scopeId: _scopeId, ...row }: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(row).map(([field, value]) => [field, value === true ? 1 : value]));

const selected = (sql: string) => (sqlite as Database.Database).prepare(`${sql} where scope_id = 1`).all();

describe("what is read of the tables", () => {
  it("is a scope's numbers by its name", () => {
    const row = rowOf(scopes, NAME);
    orm
      .insert(scopes)
      .values(row as never)
      .run();
    const { tenant: _tenant, userId: _userId, agentId: _agentId, createdAt: _createdAt, ...numbers } = row;
    expect(reads.scope.get(NAME)).toEqual(numbers);
    expect(reads.scope.get({ ...NAME, agentId: "" })).toBeUndefined();
  });

  it.each([
    ["blocks", tables.blocks, {}, () => reads.blocks.all({ scopeId: 1 })],
    ["versions", tables.memoryVersions, {}, () => reads.versions.all({ scopeId: 1 })],
    ["nodes", tables.indexNodes, {}, () => reads.nodes.all({ scopeId: 1 })],
    ["rows of policies", tables.orderingRows, { id: 1 }, () => reads.orderingRows.all({ scopeId: 1 })],
    [
      "rows of the papers' policies",
      tables.orderingRows,
      { kind: "cluster", id: 2 },
      () => reads.publishedRows.all({ scopeId: 1, kind: "cluster" }),
    ],
    ["turns", tables.turns, {}, () => selected(SELECT_TURNS)],
    ["requests", tables.requests, {}, () => selected(SELECT_REQUESTS)],
  ] as const)("is every column of %s but the scope's number, under the name of the schema", (_, table, given, read) => {
    const row = rowOf(table, given);
    orm
      .insert(table)
      .values(row as never)
      .run();
    expect(read()).toEqual([flagged(row)]);
  });
});
