import type Database from "better-sqlite3";
import { getTableColumns, getTableName, type InferSelectModel } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";

/** A statement that reads whole rows, with its values by the names of its parameters. */
export interface ReadStatement<Row> {
  all(values: Readonly<Record<string, unknown>>): Row[];
  get(values: Readonly<Record<string, unknown>>): Row | undefined;
}

/**
 * Reads a table's rows past drizzle, as drizzle would give them: there, mapping a row costs as much as SQLite does for it.
 *
 * @param rest what follows the table's name, in SQL with named parameters: `where scope_id = @scopeId order by label`
 */
export function readStatement<T extends SQLiteTable>(
  sqlite: Database.Database,
  table: T,
  rest: string,
): ReadStatement<InferSelectModel<T>> {
  const columns = Object.entries(getTableColumns(table));
  const selected = columns.map(([field, { name }]) => `"${name}" as "${field}"`).join(", ");
  const statement = sqlite.prepare<[unknown], Record<string, unknown>>(
    `select ${selected} from "${getTableName(table)}" ${rest}`,
  );
  // SQLite has no booleans; of all other columns it gives what drizzle does.
  const flags = columns.filter(([, { dataType }]) => dataType === "boolean").map(([field]) => field);
  const read = (row: Record<string, unknown>) => {
    for (const flag of flags) row[flag] = row[flag] === 1;
    return row as InferSelectModel<T>;
  };
  return {
    all:
      flags.length === 0
        ? (values) => statement.all(values) as InferSelectModel<T>[]
        : (values) => statement.all(values).map(read),
    get(values) {
      const row = statement.get(values);
      return row === undefined ? undefined : read(row);
    },
  };
}
