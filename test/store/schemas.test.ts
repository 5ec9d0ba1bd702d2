import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { SQL } from "drizzle-orm";
import { PgDialect, type PgTable, getTableConfig as postgresTable } from "drizzle-orm/pg-core";
import { SQLiteSyncDialect, type SQLiteTable, getTableConfig as sqliteTable } from "drizzle-orm/sqlite-core";
import { describe, expect, it } from "vitest";
import * as postgresSchema from "../../migrations/postgres/schema.js";
import * as sqliteSchema from "../../migrations/schema.js";

const MIGRATIONS = resolve(import.meta.dirname, "../../migrations");
const TABLES = ["changes", "conversations", "keys", "messages", "prompts", "requests", "scopes", "turns", "writes"];
/** Both databases' names of a type. */
const TYPES: Readonly<Record<string, string>> = {
  bigint: "integer",
  integer: "integer",
  "double precision": "real",
  real: "real",
  text: "text",
};

interface Column {
  readonly type: string | undefined;
  readonly notNull: boolean;
}

interface Index {
  readonly columns: readonly string[];
  readonly unique: boolean;
  readonly where: string | null;
}

interface Table {
  readonly columns: Readonly<Record<string, Column>>;
  readonly primaryKey: readonly string[];
  readonly indexes: Readonly<Record<string, Index>>;
}

type Config = ReturnType<typeof postgresTable> | ReturnType<typeof sqliteTable>;

/** What a schema says of a table, in words of both databases. */
function described({ columns, primaryKeys, indexes }: Config, toSql: (where: SQL) => string): Table {
  const own = columns.filter(({ primary }) => primary).map(({ name }) => name);
  const [composite] = primaryKeys.map((key) => key.columns.map(({ name }) => name));
  return {
    columns: Object.fromEntries(
      columns.map((column) => [column.name, { type: TYPES[column.getSQLType()], notNull: column.notNull }]),
    ),
    primaryKey: composite ?? own,
    indexes: Object.fromEntries(
      indexes.map(({ config }) => [
        config.name,
        {
          columns: config.columns.map((column) => ("name" in column ? String(column.name) : "an expression")),
          unique: config.unique ?? false,
          where: config.where === undefined ? null : toSql(config.where),
        },
      ]),
    ),
  };
}

/** A condition without its table's name, which one of the dialects prefixes with a schema. */
const bare = (sql: string) => sql.replaceAll(/(?:"\w+"\.)*"(\w+)"/g, "$1");

const [sqliteDialect, postgresDialect] = [new SQLiteSyncDialect(), new PgDialect()];
const sqlite = Object.fromEntries(
  Object.values<SQLiteTable>(sqliteSchema).map((table) => {
    const config = sqliteTable(table);
    return [config.name, described(config, (where) => bare(sqliteDialect.sqlToQuery(where).sql))];
  }),
);
const postgres = Object.fromEntries(
  Object.values(postgresSchema)
    .map((table) => postgresTable(table as PgTable))
    .map((config) => [config.name, described(config, (where) => bare(postgresDialect.sqlToQuery(where).sql))]),
);

/** What migrations make: columns by table, and the indexes with their conditions. */
function migrated(folder: string) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  const sql = files.map((name) => readFileSync(resolve(folder, name), "utf8").replaceAll("`", '"')).join("\n");
  const tables = [...sql.matchAll(/CREATE TABLE (?:"memprefix"\.)?"(\w+)" \(\n(.*?)\n\);/gs)].map(
    ([, name, body = ""]) => {
      const lines = [...body.matchAll(/^\t"(\w+)" (double precision|\w+)(.*?),?$/gm)];
      const columns = lines.map(([, column, type = "", rest = ""]) => [
        column,
        { type: TYPES[type], notNull: /NOT NULL|PRIMARY KEY/.test(rest) },
      ]);
      return [name, Object.fromEntries(columns)] as const;
    },
  );
  const indexes = [
    ...sql.matchAll(/CREATE (UNIQUE )?INDEX "(\w+)" ON \S+ (?:USING btree )?\((.*?)\)(?: WHERE (.*?))?;/g),
  ].map(
    ([, unique, name, columns = "", where]) =>
      [
        name,
        {
          columns: columns.split(",").map(bare),
          unique: unique !== undefined,
          where: where === undefined ? null : bare(where),
        },
      ] as const,
  );
  return { tables: Object.fromEntries(tables), indexes: Object.fromEntries(indexes) };
}

describe("the schema of PostgreSQL", () => {
  it("has the tables, columns, keys and indexes of SQLite's", () => {
    expect(Object.keys(sqlite).sort()).toEqual(TABLES);
    expect(postgres).toEqual(sqlite);
    for (const table of Object.values(sqlite)) {
      expect(table.primaryKey.length).toBeGreaterThan(0);
      expect(Object.values(table.columns).map(({ type }) => type)).not.toContain(undefined);
    }
  });
});

describe.each([
  ["SQLite", MIGRATIONS, sqlite],
  ["PostgreSQL", resolve(MIGRATIONS, "postgres"), postgres],
])("the migrations of %s", (_name, folder, schema) => {
  const { tables, indexes } = migrated(folder);

  it("make the tables that the schema describes", () => {
    expect(tables).toEqual(Object.fromEntries(Object.entries(schema).map(([name, { columns }]) => [name, columns])));
  });

  it("make the indexes that the schema describes", () => {
    expect(indexes).toEqual(Object.assign({}, ...Object.values(schema).map((table) => table.indexes)));
  });
});
