import { dirname } from "node:path";
import Database from "better-sqlite3";
import { messageOf } from "../../core/text/thrown.js";
import { StoreUnavailableError } from "../api/store.js";
import { makeDirectory } from "../database/open-database.js";
import { type NamedStatement, PreparedTexts, SQLITE_DIALECT, typeOf } from "../database/sql.js";
import { faultOf } from "../database/sqlite-faults.js";
import { DatabaseOpenError } from "../open-error.js";
import { type RunQuery, USAGE_TABLES, type UsageDatabase, type UsageTable } from "./usage-tables.js";

/** Milliseconds that a statement waits for another process's lock. */
const WAIT_MS = 5_000;
/** The schema's number. A file with a greater one is a newer version's; none with a lesser one was ever published. */
const SCHEMA = 5;

/** A usage log's file, beside the store's, so that no compose waits for its writes or reads. One call runs at a time. */
export class SqliteUsageDatabase implements UsageDatabase {
  readonly dialect = SQLITE_DIALECT;
  readonly #sql: PreparedTexts;
  readonly #sqlite: Database.Database;
  /** The end of the calls before; never rejects. */
  #turn: Promise<unknown> = Promise.resolve();

  /** Opens or makes the file, or `":memory:"`. Throws {@link DatabaseOpenError}. */
  constructor(file: string) {
    let sqlite: Database.Database | undefined;
    try {
      if (file !== ":memory:") makeDirectory(dirname(file));
      sqlite = new Database(file, { timeout: WAIT_MS });
      sqlite.pragma("journal_mode = WAL");
      // A power cut may lose the last seconds, never the file.
      sqlite.pragma("synchronous = NORMAL");
      sqlite.pragma("secure_delete = ON");
      sqlite.pragma("cache_size = -32000");
      makeTables(sqlite);
      this.#sqlite = sqlite;
      this.#sql = new PreparedTexts(sqlite);
    } catch (error) {
      sqlite?.close();
      throw new DatabaseOpenError(file, messageOf(error), { cause: error });
    }
  }

  read<T>(questions: (query: RunQuery) => Promise<T>): Promise<T> {
    return this.#inTurn("begin", questions);
  }

  write<T>(work: (query: RunQuery) => Promise<T>): Promise<T> {
    return this.#inTurn("begin immediate", work);
  }

  async erase(): Promise<void> {
    await this.#turn;
    this.#sqlite.pragma("wal_checkpoint(TRUNCATE)");
  }

  async close(): Promise<void> {
    await this.#turn;
    this.#sqlite.close();
  }

  #inTurn<T>(begin: string, work: (query: RunQuery) => Promise<T>): Promise<T> {
    const turn = this.#turn.then(() => this.#transaction(begin, work));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #transaction<T>(begin: string, work: (query: RunQuery) => Promise<T>): Promise<T> {
    const sent: Promise<unknown>[] = [];
    try {
      this.#sqlite.exec(begin);
      const result = await work(<R extends object>({ text }: NamedStatement, values?: readonly unknown[]) => {
        const rows = (async () => this.#sql.run<R>(text, values))();
        sent.push(rows);
        return rows;
      });
      await Promise.all(sent);
      this.#sqlite.exec("commit");
      return result;
    } catch (error) {
      await Promise.allSettled(sent);
      if (this.#sqlite.inTransaction) this.#sqlite.exec("rollback");
      const fault = faultOf(error);
      throw fault === null ? error : new StoreUnavailableError(fault, { cause: error });
    }
  }
}

function makeTables(sqlite: Database.Database): void {
  const made = () => Number(sqlite.pragma("user_version", { simple: true }));
  if (made() > SCHEMA) throw new Error("it is a newer version's");
  if (made() === SCHEMA) return;
  if (made() > 0) throw new Error("a development version from before 0.1.0 wrote it; use an empty data directory");
  sqlite
    .transaction(() => {
      // Another process may have been first.
      if (made() === SCHEMA) return;
      for (const [name, table] of Object.entries(USAGE_TABLES)) sqlite.exec(tableOf(name, table));
      sqlite.pragma(`user_version = ${SCHEMA}`);
    })
    .immediate();
}

/** The statements that make a table and its indexes. */
function tableOf(name: string, { columns, key, indexes = [] }: UsageTable): string {
  const made = Object.entries(columns).map(([column, type]) => {
    const kind = typeOf(type) === "bigint" ? "integer" : typeOf(type);
    return `${column} ${kind}${type.endsWith("?") ? "" : " not null"}`;
  });
  const rest = indexes.map(
    ({ name: of, on, isUnique }) => `create ${isUnique ? "unique " : ""}index ${of} on ${name} (${on.join()});`,
  );
  return `create table ${name} (${made.join()}, primary key (${key.join()}));
    ${rest.join("\n")}`;
}
