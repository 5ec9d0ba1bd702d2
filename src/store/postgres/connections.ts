import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { type Dialect, type NamedStatement, type SqlReader, typeOf } from "../database/sql.js";
import { isConnectionLost, namedFault } from "./postgres-faults.js";

/** The schema, and with it what else has to have a name. */
export const SCHEMA = "memprefix";

/** Groups of commits under way at once, each on a connection of its own. */
export const WRITERS = 2;
/** Connections for everything else. */
const READERS = 4;

/** Most connections of each kind. */
interface ConnectionCounts {
  readonly writers: number;
  readonly readers: number;
}

/** Milliseconds that connecting may take. */
const CONNECT_MS = 3_000;
/** Milliseconds that the server may work on one statement, and wait for one lock. */
const STATEMENT_MS = 10_000;
const LOCK_MS = 2_000;
/** Milliseconds until a connection that says nothing is given up: its server may be gone without a word. */
const SILENCE_MS = 15_000;
/** Milliseconds for which a transaction whose connection was lost is run again, and the wait before the first time; doubled after each. */
const AGAIN_MS = 2_000;
const FIRST_WAIT_MS = 10;
/** Milliseconds until an unused connection is closed. */
const IDLE_MS = 60_000;

/** OID of `bigint`; all of ours are less than 2^53. */
const INT8 = 20;

/** Sends a statement without waiting for those sent before. */
export async function ask<R extends object>(
  client: pg.ClientBase,
  { name, text }: NamedStatement,
  values: readonly unknown[] = [],
): Promise<R[]> {
  const { rows } = await client.query<R & pg.QueryResultRow>({
    ...(name === undefined ? {} : { name }),
    text,
    values: [...values],
  });
  return rows;
}

/**
 * The settings of a session. Every statement of ours finds its rows by an index: the planner is kept from scanning a table of which it has
 * no statistics yet, and from planning each time. A commit is acknowledged when it is on the server's disk, whatever its default is.
 */
const SESSION = `set statement_timeout = ${STATEMENT_MS}; set lock_timeout = ${LOCK_MS};
  set idle_in_transaction_session_timeout = ${SILENCE_MS}; set synchronous_commit = on; set plan_cache_mode = force_generic_plan;
  set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set default_transaction_isolation = 'read committed';
  set jit = off; set search_path = ${SCHEMA}`;

/** What a connection to `url` is made with. Throws for a URL that the driver cannot read. */
export function clientConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "memprefix",
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    types: {
      // The driver's own type names one kind of parser for texts and another for bytes; ours is of texts.
      getTypeParser: ((oid: number, format?: "text" | "binary") =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  };
}

/** What SQL of both databases says in PostgreSQL. */
export const POSTGRES_DIALECT: Dialect = {
  rows: (parameter, alias, columns) => {
    const typed = Object.entries(columns).map(([name, type]) => `${name} ${typeOf(type)}`);
    return `json_to_recordset(cast(${parameter} as json)) as ${alias} (${typed.join()})`;
  },
  among: (query) => `= any (array(${query}))`,
  list: (expression) => `cast(json_agg(${expression}) as text)`,
};

/** The connections of one process to its server. */
export class Connections implements SqlReader {
  readonly dialect = POSTGRES_DIALECT;
  readonly #writers: pg.Pool;
  readonly #readers: pg.Pool;
  /** Grows with each failover; those of an earlier one are closed. */
  #generation = 0;
  readonly #generations = new WeakMap<pg.ClientBase, number>();

  constructor(url: string, { writers, readers }: ConnectionCounts = { writers: WRITERS, readers: READERS }) {
    this.#writers = poolOf(url, writers);
    this.#readers = poolOf(url, readers);
  }

  read<R extends object>(statement: NamedStatement, values: readonly unknown[] = []): Promise<R[]> {
    return this.#look((client) => ask<R>(client, statement, values));
  }

  /** Runs several queries on one state of the database, in one round trip. Rejects as `read` does. */
  readTogether<T>(questions: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    return this.#look(async (client) => {
      const [, answers] = await Promise.all([
        client.query("begin isolation level repeatable read read only"),
        questions(client),
        client.query("commit"),
      ]);
      return answers;
    });
  }

  /** Acquires a connection for a transaction that is no commit of a scope. Rejects with the store's faults. */
  async change<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    try {
      return await this.#run(this.#readers, work);
    } catch (error) {
      throw this.observed(error);
    }
  }

  /**
   * The same for a transaction that may be run twice: where its connection is lost it is run again, for {@link AGAIN_MS} at most, as it may
   * be stored or not. Rejects with the store's faults.
   */
  async changeAgain<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    for (let wait = FIRST_WAIT_MS; ; wait *= 2) {
      try {
        return await this.#run(this.#readers, work);
      } catch (error) {
        const isOver = performance.now() - startedAt + wait > AGAIN_MS;
        if (!isConnectionLost(error) || isOver) throw this.observed(error);
      }
      await setTimeout(wait);
    }
  }

  /** Acquires a connection for a group of commits. Rejects with what was thrown. */
  write<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    return this.#run(this.#writers, work);
  }

  /** The store's fault that an error stands for. After a failover every connection may lead to what is a standby now, so all are closed. */
  observed(error: unknown): unknown {
    const fault = namedFault(error);
    if (fault instanceof Error && "fault" in fault && fault.fault === "read-only") this.#closeAll();
    return fault;
  }

  async close(): Promise<void> {
    await Promise.all([this.#writers.end(), this.#readers.end()]);
  }

  /** A question changes nothing, so it is asked again where its connection was lost. */
  async #look<T>(question: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    try {
      return await this.#run(this.#readers, question);
    } catch (error) {
      if (!isConnectionLost(error)) throw namedFault(error);
    }
    try {
      return await this.#run(this.#readers, question);
    } catch (error) {
      throw namedFault(error);
    }
  }

  /** Acquired ones are closed when they are released. */
  #closeAll(): void {
    this.#generation++;
  }

  async #run<T>(pool: pg.Pool, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    const client = await this.#acquired(pool);
    try {
      const result = await work(client);
      client.release(this.#isOld(client));
      return result;
    } catch (error) {
      if (isConnectionLost(error)) client.release(true);
      else await this.#undo(client);
      throw error;
    }
  }

  /** A connection made since the last failover. */
  async #acquired(pool: pg.Pool): Promise<pg.PoolClient> {
    for (;;) {
      const client = await pool.connect();
      if (!this.#generations.has(client)) this.#generations.set(client, this.#generation);
      if (!this.#isOld(client)) return client;
      client.release(true);
    }
  }

  #isOld(client: pg.ClientBase): boolean {
    return this.#generations.get(client) !== this.#generation;
  }

  /** Ends whatever transaction a failed statement left open. */
  async #undo(client: pg.PoolClient): Promise<void> {
    try {
      await client.query("rollback");
      client.release(this.#isOld(client));
    } catch {
      client.release(true);
    }
  }
}

function poolOf(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({
    ...clientConfig(url),
    max,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: SILENCE_MS,
    pipeline: true,
    // Typed as if nobody waited for it; the pool does.
    onConnect: (client) => client.query(SESSION) as unknown as undefined,
  });
  // An idle connection was lost: the pool drops it, and the next call makes another.
  pool.on("error", () => {});
  // An acquired one was: its holder gets that as an error of the statements under way.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
