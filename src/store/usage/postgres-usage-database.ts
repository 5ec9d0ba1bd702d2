import type pg from "pg";
import { StoreUnavailableError } from "../api/store.js";
import type { NamedStatement } from "../database/sql.js";
import { ask, Connections, POSTGRES_DIALECT } from "../postgres/connections.js";
import type { RunQuery, UsageDatabase } from "./usage-tables.js";

/** Connections of one process. */
const USAGE_CONNECTIONS = { writers: 1, readers: 2 } as const;

/** The advisory lock of those that write: numbers grow, sums add up, and bounds hold, whichever instance records. Reads take no lock. */
const LOCK: NamedStatement = { name: "usage_lock", text: "select pg_advisory_xact_lock(7883957431812027)" };

/** A usage log in a database that `openPostgres` brought up to date, for any number of processes. It connects with the first call. */
export class PostgresUsageDatabase implements UsageDatabase {
  readonly dialect = POSTGRES_DIALECT;
  readonly #connections: Connections;
  #isClosed = false;

  constructor(url: string) {
    this.#connections = new Connections(url, USAGE_CONNECTIONS);
  }

  read<T>(questions: (query: RunQuery) => Promise<T>): Promise<T> {
    return this.#connections.readTogether((client) => questions((...sent) => ask(client, ...sent)));
  }

  async write<T>(work: (query: RunQuery) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#connections.write((client) => transaction(client, work));
      } catch (error) {
        const fault = this.#connections.observed(error);
        const isLost = fault instanceof StoreUnavailableError && fault.fault === "unreachable";
        if (!isLost || attempt > 1) throw fault;
      }
    }
  }

  // Its vacuums go on by themselves.
  async erase(): Promise<void> {}

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#connections.close();
  }
}

/** What `work` does not wait for is in one round trip with the commit. */
async function transaction<T>(client: pg.ClientBase, work: (query: RunQuery) => Promise<T>): Promise<T> {
  const sent: Promise<unknown>[] = [];
  const send = <R>(outcome: Promise<R>): Promise<R> => {
    sent.push(outcome);
    // All are waited for in the end; until then, one that fails is no unhandled one.
    outcome.catch(() => {});
    return outcome;
  };
  send(client.query("begin"));
  send(ask(client, LOCK));
  const result = await work((...of) => send(ask(client, ...of)));
  send(client.query("commit"));
  await Promise.all(sent);
  return result;
}
