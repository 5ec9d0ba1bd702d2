import type Database from "better-sqlite3";
import { getTableColumns, getTableName, is } from "drizzle-orm";
import { SQLiteTable } from "drizzle-orm/sqlite-core";
import { afterAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/database/open-database.js";
import * as schema from "../../../src/store/database/schema.js";
import { prepareStatements, type Statement } from "../../../src/store/database/statements.js";

const { sqlite, orm } = openDatabase(":memory:");
afterAll(() => sqlite.close());

const statements = prepareStatements(sqlite);
const tables = new Map<string, SQLiteTable>(
  Object.values(schema)
    .filter((table) => is(table, SQLiteTable))
    .map((table) => [getTableName(table), table]),
);

/** What a column is called in the schema. */
function fieldOf(table: string, column: string): string | undefined {
  const columns = Object.entries(getTableColumns(tables.get(table) as SQLiteTable));
  return columns.find(([, { name }]) => name === column)?.[0];
}

/** Result columns of a statement as the database names them; none for one that only writes. */
function columnsOf(name: string): readonly Database.ColumnDefinition[] {
  const statement = statements[name as keyof typeof statements] as unknown as Database.Statement;
  return statement.reader ? statement.columns() : [];
}

/** A row with another value in each column, flags as SQLite takes them. */
function rowOf(table: SQLiteTable, seed: number) {
  const columns = Object.entries(getTableColumns(table));
  return Object.fromEntries(
    columns.map(([field, { dataType, enumValues, name }], at) => {
      if (name === "scope_id") return [field, 1];
      if (dataType === "boolean") return [field, seed % 2];
      if (dataType === "number") return [field, 100 * seed + at];
      return [field, enumValues?.[seed % enumValues.length] ?? `${field} ${seed}`];
    }),
  );
}

/** The same row, as drizzle gives it. */
function drizzled(table: SQLiteTable, row: Readonly<Record<string, unknown>>) {
  const columns = getTableColumns(table);
  return Object.fromEntries(
    Object.entries(row).map(([field, value]) => [field, columns[field]?.dataType === "boolean" ? value === 1 : value]),
  );
}

describe("hot statements", () => {
  it.each(Object.keys(statements))("%s gives what it reads under the names of the schema", (name) => {
    for (const { column, table, name: given } of columnsOf(name)) {
      if (column === null || table === null || given === column) continue;
      const asked = `${name}.${given}`;
      // A version's number is that of its commits.
      expect(asked).toBe(asked === "version.commits" ? asked : `${name}.${fieldOf(table, column)}`);
    }
  });

  it.each([
    ["blocks", schema.blocks],
    ["versions", schema.memoryVersions],
    ["nodes", schema.indexNodes],
    ["orderingRows", schema.orderingRows],
    ["publishedRows", schema.orderingRows],
    ["turn", schema.turns],
    ["conversationTurns", schema.turns],
    ["request", schema.requests],
    ["requestsBefore", schema.requests],
  ])("%s reads every column but the scope's number", (name, table) => {
    const all = Object.keys(getTableColumns(table)).filter((field) => field !== "scopeId");
    expect(
      columnsOf(name)
        .map((column) => column.name)
        .sort(),
    ).toEqual(all.sort());
  });

  const NEW_SCOPE = { tenant: "t", userId: "u", agentId: "", nextLabel: 1, nextNode: 2, nextTurn: 3, requests: 4 };

  it("keep a scope, move it on from its version only, and find it by its name", () => {
    const { addScope, moveScope, scope, scopeId, version } = statements;
    const created = { ...NEW_SCOPE, bankedTokens: 5, createdAt: 6 };
    expect(addScope.get(created)).toBe(1);
    expect(addScope.get(created)).toBeUndefined();
    expect(orm.select().from(schema.scopes).all()).toEqual([{ ...created, scopeId: 1, version: 1 }]);
    const moved = {
      ...NEW_SCOPE,
      nextLabel: 11,
      nextNode: 12,
      nextTurn: 13,
      requests: 14,
      bankedTokens: 15,
      scopeId: 1,
    };
    expect(moveScope.run({ ...moved, version: 7 }).changes).toBe(0);
    expect(moveScope.run({ ...moved, agentId: "another", version: 1 }).changes).toBe(0);
    expect(moveScope.run({ ...moved, version: 1 }).changes).toBe(1);
    const stored = { ...created, ...moved, version: 2 };
    expect(orm.select().from(schema.scopes).all()).toEqual([stored]);
    expect(stored).toMatchObject(scope.get(NEW_SCOPE) ?? {});
    expect(scope.get({ ...NEW_SCOPE, agentId: "another" })).toBeUndefined();
    expect([scopeId.get(NEW_SCOPE), version.get(NEW_SCOPE)]).toEqual([1, { scopeId: 1, commits: 2 }]);
  });

  // Values that no second write changes, and those that a first one begins with.
  it.each([
    ["keepBlock", schema.blocks, ["label", "text", "tokens"], {}],
    ["keepVersion", schema.memoryVersions, ["memoryId", "label"], {}],
    ["keepForgotten", schema.forgottenMemories, ["tenant", "userId", "memoryId"], {}],
    ["keepNode", schema.indexNodes, ["id", "anchor", "bracketed"], {}],
    ["keepOrderingRow", schema.orderingRows, ["kind", "id"], {}],
    ["keepSection", schema.sections, ["digest"], {}],
    ["addRequest", schema.requests, ["requestId"], { evicted: 0, observed: null }],
  ] as const)("%s writes every column, again where the row is there", (name, table, fixed, begun) => {
    const statement = statements[name] as Statement<Readonly<Record<string, unknown>>>;
    const [first, second] = [rowOf(table, 1), rowOf(table, 2)];
    statement.run(first);
    expect(orm.select().from(table).all()).toEqual([drizzled(table, { ...first, ...begun })]);
    const again = { ...second, ...Object.fromEntries(fixed.map((field) => [field, first[field]])) };
    statement.run(again);
    expect(orm.select().from(table).all()).toEqual([drizzled(table, { ...again, ...begun })]);
  });

  it("addTurn writes every column, and what is there is not written over", () => {
    const row = rowOf(schema.turns, 1);
    const addTurn = statements.addTurn as unknown as Statement<Readonly<Record<string, unknown>>>;
    addTurn.run(row);
    expect(orm.select().from(schema.turns).all()).toEqual([drizzled(schema.turns, row)]);
    expect(() => addTurn.run(row)).toThrow("UNIQUE");
  });

  it("keepConversation counts turns, and knows the first one's time and the last one's", () => {
    const row = { scopeId: 1, id: "c" };
    statements.keepConversation.run({ ...row, lastTurnAt: 10 });
    statements.keepConversation.run({ ...row, lastTurnAt: 20 });
    expect(orm.select().from(schema.conversations).all()).toEqual([
      { ...row, turns: 2, createdAt: 10, lastTurnAt: 20 },
    ]);
  });

  it("give nothing where a value is missing", () => {
    expect(() => statements.turn.get({ scopeId: 1 } as never)).toThrow("Missing named parameter");
  });
});
