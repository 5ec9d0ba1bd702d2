import { and, asc, eq, getTableColumns, getTableName, is, type SQL, sql } from "drizzle-orm";
import { getTableConfig, type SQLiteColumn, type SQLiteTable, SQLiteTable as Table } from "drizzle-orm/sqlite-core";
import type { ExportedRow, ExportedScope, ExportedUser } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { forgottenMemories, responses, scopes } from "../../../src/store/database/schema.js";
import { readAnswer, readInjection } from "../../../src/store/upgrade/table-rows.js";
import * as tables from "../../../src/store/upgrade/table-schema.js";
import { StoredMessages } from "./stored-messages.js";

/** Rows per page; other work runs in between. */
const ROWS_AT_ONCE = 200;

/** Columns with our own JSON: exported with field names in snake_case. */
const OWN_JSON: readonly SQLiteColumn[] = [
  tables.indexNodes.run,
  tables.orderingRows.row,
  tables.turns.requested,
  tables.requests.observed,
];
/** Columns with the application's own JSON: exported unmodified. */
const GIVEN_JSON: readonly SQLiteColumn[] = [responses.output];
/** Columns that list the application's messages: exported unmodified, null for erased ones. */
const SAID: readonly SQLiteColumn[] = [tables.heads.messages, tables.turns.given];
/** Digests are not exported: they would confirm a guess of a short text. */
const DIGESTS: readonly SQLiteColumn[] = [
  tables.heads.digest,
  tables.indexNodes.anchor,
  tables.requests.body,
  tables.turns.head,
  tables.turns.prompt,
  tables.turns.anchor,
  responses.id,
  responses.sent,
];
/** Columns that name the tenant, or count other users' rows. */
const NOT_THE_USERS: readonly SQLiteColumn[] = [responses.tenant, responses.used];
/** Tables that hold only digests, or that are exported where they are referred to. */
const NOT_EXPORTED: readonly SQLiteTable[] = [scopes, tables.sections, tables.messages];

/** A table whose rows belong to a scope. */
interface ScopedTable {
  readonly name: string;
  readonly table: SQLiteTable;
  readonly scopeId: SQLiteColumn;
  /** The key of a scope's rows, and their order. */
  readonly key: readonly SQLiteColumn[];
  readonly columns: readonly (readonly [key: string, column: SQLiteColumn])[];
}

/** Every other table of the schema with a scope's number, so that none can be forgotten. */
const SCOPED_TABLES: readonly ScopedTable[] = [...Object.values(tables), responses].flatMap((table): ScopedTable[] => {
  if (!is(table, Table) || NOT_EXPORTED.includes(table)) return [];
  const columns = Object.entries(getTableColumns(table)) as [string, SQLiteColumn][];
  const scopeId = columns.find(([, { name }]) => name === "scope_id")?.[1];
  if (scopeId === undefined) return [];
  const own = columns.filter(([, { name }]) => name !== "scope_id");
  return [{ name: getTableName(table), table, scopeId, key: keyOf(table), columns: own }];
});

function keyOf(table: SQLiteTable): readonly SQLiteColumn[] {
  // In served order, which has an index.
  if (table === tables.requests) return [tables.requests.turn, tables.requests.requestId];
  return getTableConfig(table).primaryKeys.flatMap(({ columns }) => columns.filter(({ name }) => name !== "scope_id"));
}

/**
 * See `Store.exportUser`. Every row of every table of every scope, under the schema's names, with JSON parsed. A scope's number is left out:
 * it counts other users. Reads in pages, with `pause` awaited in between; concurrent writes may be missing.
 */
export async function readUserExport(
  database: OpenDatabase,
  tenant: string,
  userId: string,
  pause: () => Promise<void>,
): Promise<ExportedUser> {
  const { orm } = database;
  const messages = new StoredMessages(database);
  const exported: ExportedScope[] = [];
  const own = orm
    .select()
    .from(scopes)
    .where(and(eq(scopes.tenant, tenant), eq(scopes.userId, userId)))
    .orderBy(asc(scopes.scopeId))
    .all();
  for (const { scopeId, tenant: _tenant, userId: _userId, agentId, ...counters } of own) {
    const rows: Record<string, readonly ExportedRow[]> = {};
    for (const table of SCOPED_TABLES) rows[table.name] = await readRows(orm, messages, table, scopeId, pause);
    exported.push({
      agentId: agentId === "" ? null : agentId,
      scope: snakeCased(counters) as ExportedRow,
      tables: rows,
    });
  }
  const forgotten = orm
    .select({ id: forgottenMemories.memoryId })
    .from(forgottenMemories)
    .where(and(eq(forgottenMemories.tenant, tenant), eq(forgottenMemories.userId, userId)))
    .orderBy(asc(forgottenMemories.memoryId))
    .all();
  return { scopes: exported, forgottenMemories: forgotten.map(({ id }) => id) };
}

async function readRows(
  orm: OpenDatabase["orm"],
  messages: StoredMessages,
  { table, scopeId: column, key, columns }: ScopedTable,
  scopeId: number,
  pause: () => Promise<void>,
): Promise<readonly ExportedRow[]> {
  const rows: ExportedRow[] = [];
  const exported = columns.filter(([, at]) => !DIGESTS.includes(at) && !NOT_THE_USERS.includes(at));
  const names = key.map((keyColumn) => sql`${keyColumn}`);
  const keyFields = key.map((keyColumn) => columns.find(([, at]) => at === keyColumn)?.[0] ?? "");
  for (let isBehind: SQL | undefined; ; ) {
    const piece: Record<string, unknown>[] = orm
      .select(Object.fromEntries(columns))
      .from(table)
      .where(and(eq(column, scopeId), isBehind))
      .orderBy(...key.map((keyColumn) => asc(keyColumn)))
      .limit(ROWS_AT_ONCE)
      .all();
    for (const row of piece)
      rows.push(Object.fromEntries(exported.map(([field, at]) => [at.name, exportedValue(messages, at, row[field])])));
    const last = piece.at(-1);
    if (piece.length < ROWS_AT_ONCE || last === undefined) return rows;
    const values = keyFields.map((field) => sql`${last[field]}`);
    isBehind = sql`(${sql.join(names, sql`, `)}) > (${sql.join(values, sql`, `)})`;
    await pause();
  }
}

function exportedValue(messages: StoredMessages, column: SQLiteColumn, value: unknown): unknown {
  if (value === null || typeof value !== "string") return value;
  if (column === tables.turns.injection) return snakeCased(readInjection(value));
  if (column === tables.requests.answer) return snakeCased(readAnswer(value));
  if (GIVEN_JSON.includes(column)) return JSON.parse(value);
  if (OWN_JSON.includes(column)) return snakeCased(JSON.parse(value));
  return SAID.includes(column) ? messages.bodiesOf(value) : value;
}

/** The same with field names in `snake_case`. */
function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snakeCased(inner),
    ]),
  );
}
