import { setTimeout } from "node:timers/promises";
import pg from "pg";
import type { Statement } from "../database.js";
import { StoreUnavailableError } from "../store.js";
import { isConnectionLost, isNameLost, isUndoneForAnother, namedFault } from "./faults.js";
import type { Statements } from "./statements.js";

/** Connections of users who are held, and those of everything else: whoever holds a user may still read. */
const MOST = { holders: 16, others: 4 };
type Purpose = keyof typeof MOST;

/** Milliseconds that connecting, and waiting for a connection, may take. */
const CONNECT_MS = 3_000;
/** Milliseconds that the server may work on one statement, and wait for one lock. */
const STATEMENT_MS = 10_000;
const LOCK_MS = 2_000;
/** Milliseconds until a connection that says nothing is given up: its server may be gone without a word. */
const SILENCE_MS = 15_000;
/** Milliseconds until an unused connection is closed. */
const IDLE_MS = 60_000;
/** Milliseconds between attempts: the first wait, doubled after each. */
const FIRST_WAIT_MS = 10;

/**
 * Begins a transaction with its settings, since a pooler gives the next one another session. A commit is acknowledged when it is on the
 * server's disk. Every statement finds its rows by an index: a plan made while a table was small must not scan it once it has grown.
 */
const BEGIN = `begin isolation level read committed; set local statement_timeout = ${STATEMENT_MS}; set local lock_timeout = ${LOCK_MS};
  set local idle_in_transaction_session_timeout = ${SILENCE_MS}; set local synchronous_commit = on; set local enable_seqscan = off;
  set local jit = off`;

/** OIDs of `bigint`, `smallint`, `integer`, `real`, `double precision` and `numeric`; ours are exact as doubles. */
const NUMBERS = new Set([20, 21, 23, 700, 701, 1700]);
const BOOLEAN = 16;

/** Numbers and texts, as SQLite gives them. */
function parserOf(oid: number): (text: string) => number | string {
  if (NUMBERS.has(oid)) return Number;
  return oid === BOOLEAN ? (text) => (text === "t" ? 1 : 0) : String;
}

/** What a connection to `url` is made with. Throws for a URL that the driver cannot read. */
export function clientConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "memprefix",
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    // The driver's own type names a parser of bytes, too.
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  };
}

/** A connection on loan. Everything is sent at once, without waiting for the answers to what was sent before. */
export class Connection {
  /** @param release gives it back; one that is lost is closed */
  constructor(
    private readonly client: pg.ClientBase,
    private readonly statements: Statements,
    readonly release: (isLost: boolean) => void,
  ) {}

  begin(): Promise<unknown> {
    return this.client.query(BEGIN);
  }

  async ask<R extends object>(statement: Statement): Promise<R[]> {
    const { rows } = await this.client.query<R & pg.QueryResultRow>(this.statements.query(statement));
    return rows;
  }

  async commit(): Promise<void> {
    const { command } = await this.client.query("commit");
    // The answer to the end of a transaction in which something failed.
    if (command !== "COMMIT") throw new Error("the transaction was undone");
  }

  rollback(): Promise<unknown> {
    return this.client.query("rollback");
  }
}

/** The connections of one process to its server. Rejects with the store's faults. */
export class Connections {
  readonly #pools: Readonly<Record<Purpose, pg.Pool>>;
  /** Grows with each failover; connections from before it are closed. */
  #generation = 0;
  readonly #generations = new WeakMap<pg.ClientBase, number>();

  constructor(
    url: string,
    private readonly statements: Statements,
  ) {
    this.#pools = { holders: poolOf(url, MOST.holders), others: poolOf(url, MOST.others) };
  }

  async acquire(purpose: Purpose): Promise<Connection> {
    try {
      for (;;) {
        const client = await this.#pools[purpose].connect();
        if (!this.#generations.has(client)) this.#generations.set(client, this.#generation);
        const isOld = () => this.#generations.get(client) !== this.#generation;
        if (!isOld()) return new Connection(client, this.statements, (isLost) => client.release(isLost || isOld()));
        client.release(true);
      }
    } catch (error) {
      throw this.named(error);
    }
  }

  /**
   * Runs statements in a transaction of their own, in one round trip; gives the rows of each. It is run once more where the connection was
   * lost or another transaction was preferred, and for some time again and again.
   *
   * @param patienceMs for how long, in milliseconds
   */
  async transact(statements: readonly Statement[], patienceMs = 0): Promise<object[][]> {
    const startedAt = performance.now();
    for (let wait = FIRST_WAIT_MS, isFirst = true; ; wait *= 2, isFirst = false) {
      try {
        return await this.#transactOnce(statements);
      } catch (error) {
        const fault = this.named(error);
        const isOver = !isFirst && performance.now() - startedAt + wait > patienceMs;
        if (isOver || !(isConnectionLost(error) || isUndoneForAnother(error))) throw fault;
      }
      await setTimeout(wait);
    }
  }

  /**
   * The fault that an error stands for. After a failover every connection may lead to what is a standby now, so all are closed; after a
   * prepared statement was lost, none is relied on.
   */
  named(error: unknown): unknown {
    const fault = namedFault(error);
    if (fault instanceof StoreUnavailableError && fault.fault === "read-only") this.#generation++;
    if (isNameLost(error)) this.statements.forgetNames();
    return fault;
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()));
  }

  async #transactOnce(statements: readonly Statement[]): Promise<object[][]> {
    const connection = await this.acquire("others");
    const begun = connection.begin();
    const asked = statements.map((statement) => connection.ask(statement));
    const sent = [begun, ...asked, connection.commit()];
    let isLost = false;
    try {
      await Promise.all(sent);
      return await Promise.all(asked);
    } catch (error) {
      isLost = isConnectionLost(error);
      await Promise.allSettled(sent);
      throw error;
    } finally {
      connection.release(isLost);
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
  });
  // An idle connection was lost: the pool drops it, and the next call makes another.
  pool.on("error", () => {});
  // An acquired one was: its holder gets that as an error of the statements under way.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
