import type { Database, ReadRows, SqlValue, Statement, UserTransaction } from "../database.js";
import type { User } from "../store.js";
import type { Connections } from "./connections.js";
import { PostgresTransaction } from "./transaction.js";

/** How long a write is retried while the server is away. */
const PATIENCE_MS = 2_000;

/** A database on a PostgreSQL server, shared by several processes. Holding a user locks its row without an agent. */
export class PostgresDatabase implements Database {
  readonly isShared = true;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(private readonly connections: Connections) {}

  readonly isAmong = (parameter: string) => `= any (array(select json_array_elements_text(${parameter}::json)))`;

  readonly read: ReadRows = async <R extends object>(text: string, values: readonly SqlValue[]) => {
    const [rows] = await this.connections.transact([{ text, values }]);
    return rows as R[];
  };

  readonly readAside: ReadRows = this.read;

  readonly take: ReadRows = this.read;

  readonly lockFree = "for update skip locked";

  async write(statements: readonly Statement[]): Promise<void> {
    await this.#watch(this.connections.transact(statements, PATIENCE_MS));
  }

  hold<T>(user: User, work: (transaction: UserTransaction) => Promise<T>): Promise<T> {
    return this.#watch(this.#hold(user, work));
  }

  /** No row has the text. A client cannot clear the server's free space, log, replicas and archives. */
  async erase(): Promise<"erased"> {
    return "erased";
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    await this.connections.close();
  }

  async #hold<T>(user: User, work: (transaction: UserTransaction) => Promise<T>, isAgain = false): Promise<T> {
    const connection = await this.connections.acquire("holders");
    const transaction = new PostgresTransaction(connection, this.connections, user);
    try {
      return await work(transaction);
    } catch (error) {
      // A pooled connection from before a server restart is found lost when it is used.
      if (isAgain || !transaction.isLostUnused) throw error;
    } finally {
      void this.#watch(transaction.end());
    }
    return this.#hold(user, work, true);
  }

  #watch<T>(promise: Promise<T>): Promise<T> {
    this.#underWay.add(promise);
    const settled = () => this.#underWay.delete(promise);
    promise.then(settled, settled);
    return promise;
  }
}
