import { sql } from "drizzle-orm";
import {
  bigint,
  doublePrecision,
  index,
  type PgColumn,
  pgSchema,
  primaryKey,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { typeOf } from "../database/sql.js";
import { SCHEMA } from "../postgres/schema.js";
import { type TableName, USAGE_TABLES, type UsageTable } from "./usage-tables.js";

/*
 * The usage log's tables in PostgreSQL, for drizzle-kit, which makes the migration.
 */

const memstem = pgSchema(SCHEMA);

const BUILDERS = {
  bigint: (name: string) => bigint(name, { mode: "number" }),
  "double precision": (name: string) => doublePrecision(name),
  text: (name: string) => text(name),
};

function tableOf(name: TableName) {
  const { columns, key, indexes = [] }: UsageTable = USAGE_TABLES[name];
  const built = Object.entries(columns).map(([column, type]) => {
    const builder = BUILDERS[typeOf(type)](column);
    const isKey = key.length === 1 && key[0] === column;
    return [column, isKey ? builder.primaryKey() : type.endsWith("?") ? builder : builder.notNull()] as const;
  });
  return memstem.table(name, Object.fromEntries(built), (table) => {
    const column = (of: string): PgColumn => table[of] as PgColumn;
    return [
      ...(key.length === 1 ? [] : [primaryKey({ columns: key.map(column) as [PgColumn, ...PgColumn[]] })]),
      ...indexes.map(({ name: of, on, isUnique, given }) => {
        const parts = on.map((part) => (part in columns ? column(part) : sql.raw(part)));
        const made = (isUnique ? uniqueIndex(of) : index(of)).on(...(parts as [PgColumn]));
        return given === undefined ? made : made.where(sql`${column(given)} is not null`);
      }),
    ];
  });
}

export const usageState = tableOf("usage_state");
export const usageMarks = tableOf("usage_marks");
export const usageBatches = tableOf("usage_batches");
export const usageDeletedUsers = tableOf("usage_deleted_users");
export const usageTenants = tableOf("usage_tenants");
export const usageGroups = tableOf("usage_groups");
export const usageOwners = tableOf("usage_owners");
export const usagePrompts = tableOf("usage_prompts");
export const usageSums = tableOf("usage_sums");
export const usageNotes = tableOf("usage_notes");
