import { afterEach, beforeEach, type TestContext } from "vitest";
import type { Database, SqlValue } from "../../src/store/database.js";
import { storeIn } from "../../src/store/sql-store.js";
import type { Store } from "../../src/store/store.js";
import { ComposedUsers } from "./composed-users.js";

/** A new, empty database. */
export interface SuiteDatabase {
  readonly database: Database;
  /** Opens it once more, for another store that writes to it, too; null where there cannot be any. */
  readonly beside: (() => Promise<Database>) | null;
}

export type OpenDatabase = () => SuiteDatabase | Promise<SuiteDatabase>;

const TABLES = ["scopes", "changes", "conversations", "turns", "messages", "requests", "prompts", "writes"] as const;

/** A store for each test, with the users that are composed in it. */
export class SuiteStore {
  database!: Database;
  store!: Store;
  users!: ComposedUsers;
  #beside: SuiteDatabase["beside"] = null;
  #others: Database[] = [];

  constructor(open: OpenDatabase) {
    beforeEach(async () => {
      const { database, beside } = await open();
      this.database = database;
      this.#beside = beside;
      this.store = storeIn(database);
      this.users = new ComposedUsers(this.store);
    });
    afterEach(async () => {
      for (const other of this.#others.splice(0)) await other.close();
      await this.store.close();
    });
  }

  /** Users of another store on the database; skips the test where there cannot be any. */
  async other({ skip }: Pick<TestContext, "skip">): Promise<ComposedUsers> {
    if (this.#beside === null) return skip("no other store can open it");
    const other = await this.#beside();
    this.#others.push(other);
    return new ComposedUsers(storeIn(other));
  }

  rows(table: (typeof TABLES)[number], scopeId?: number): Promise<Record<string, SqlValue>[]> {
    const where = scopeId === undefined ? "" : ` where ${table === "scopes" ? "id" : "scope_id"} = ${scopeId}`;
    return this.database.read(`select * from ${table}${where}`, []);
  }

  /** Where a text is in any row, or in one scope's: `table.column`, each once. */
  async placesOf(text: string, scopeId?: number): Promise<readonly string[]> {
    const forms = [text, ...escapedForms(text)];
    const places = new Set<string>();
    for (const table of TABLES)
      for (const row of await this.rows(table, scopeId))
        for (const [column, value] of Object.entries(row))
          if (typeof value === "string" && forms.some((form) => value.includes(form))) places.add(`${table}.${column}`);
    return [...places].sort();
  }
}

/** A text as it stands in JSON, and in JSON in a text of JSON. */
function escapedForms(text: string): readonly string[] {
  const escaped = (one: string) => JSON.stringify(one).slice(1, -1);
  return [escaped(text), escaped(escaped(text))];
}
