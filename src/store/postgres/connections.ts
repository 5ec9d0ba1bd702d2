import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { keptIn } from "../../core/text/collections.js";
import type { Statement } from "../database.js";
import { namedFault, StoreUnavailableError } from "../store.js";
import { faultOfPostgres, isConnectionLost, isNameLost, isUndoneForAnother } from "./faults.js";
import type { Statements } from "./statements.js";

/** Most connections. A caller that holds a user may still read: that takes one of `others`. */
const MOST = { holders: 16, others: 4 };
type Purpose = keyof typeof MOST;

/** For connecting, and for waiting for a free connection. */
const CONNECT_MS = 3_000;
const STATEMENT_MS = 10_000;
const LOCK_MS = 2_000;
/** A connection is closed after so long without an answer, or without use. */
const SILENCE_MS = 15_000;
const IDLE_MS = 60_000;
/** The wait before the second attempt; doubled for each later one. */
const FIRST_WAIT_MS = 10;

/**
 * Settings of every transaction. A commit is on the server's disk before it resolves. Indexes are always preferred: a plan made while a table
 * was small must not scan it once it has grown.
 */
const SETTINGS = {
  statement_timeout: STATEMENT_MS,
  lock_timeout: LOCK_MS,
  idle_in_transaction_session_timeout: SILENCE_MS,
  synchronous_commit: "on",
  enable_seqscan: "off",
  // Planning a commit takes as long as running it.
  plan_cache_mode: "force_generic_plan",
  jit: "off",
};

/** Set at the start of our own sessions; a pooler runs the next transaction in another session. */
const AT_CONNECT = Object.entries(SETTINGS)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(" ");
const IN_TRANSACTION = Object.entries(SETTINGS)
  .map(([name, value]) => `; set local ${name} = ${value}`)
  .join("");
const BEGIN = "begin isolation level read committed";

/** OIDs of `bigint`, `smallint`, `integer`, `real`, `double precision` and `numeric`. */
const NUMBERS = new Set([20, 21, 23, 700, 701, 1700]);
const BOOLEAN = 16;

function parserOf(oid: number): (text: string) => number | string {
  if (NUMBERS.has(oid)) return Number;
  return oid === BOOLEAN ? (text) => (text === "t" ? 1 : 0) : String;
}

/** Values come as numbers and texts, as in SQLite. Throws for a URL that the driver cannot read. */
export function clientConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "memprefix",
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    // The driver's type includes parsers of bytes.
    types: { getTypeParser: parserOf as typeof pg.types.getTypeParser },
  };
}

/** The driver's socket, which it does not type. */
interface WithSocket {
  readonly connection?: { readonly stream?: { cork(): void; uncork(): void } };
}

/** A pooled connection. Sends statements without waiting for earlier answers, and all of one event loop turn in one write. */
export class PostgresConnection {
  #isCorked = false;

  /** @param release returns it to the pool, or closes it where it is lost */
  constructor(
    private readonly client: pg.ClientBase & WithSocket,
    private readonly statements: Statements,
    readonly release: (isLost: boolean) => void,
  ) {}

  begin(): Promise<unknown> {
    return this.#send(this.statements.isPooled ? BEGIN + IN_TRANSACTION : BEGIN);
  }

  async ask<R extends object>(statement: Statement): Promise<R[]> {
    const { rows } = await this.#send<R & pg.QueryResultRow>(this.statements.query(statement));
    return rows;
  }

  async commit(): Promise<void> {
    const { command } = await this.#send("commit");
    // The server's answer if an earlier statement failed.
    if (command !== "COMMIT") throw new Error("the transaction was undone");
  }

  rollback(): Promise<unknown> {
    return this.#send("rollback");
  }

  #send<R extends pg.QueryResultRow>(query: string | pg.QueryConfig): Promise<pg.QueryResult<R>> {
    const { stream } = this.client.connection ?? {};
    if (stream !== undefined && !this.#isCorked) {
      this.#isCorked = true;
      stream.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        stream.uncork();
      });
    }
    return this.client.query<R>(query as pg.QueryConfig);
  }
}

/** One process's connections to its server. Rejects with the store's faults. */
export class Connections {
  readonly #pools: Readonly<Record<Purpose, pg.Pool>>;
  /** How often connections were found stale; those made before the last time are closed. */
  #generation = 0;
  readonly #generations = new WeakMap<pg.ClientBase, number>();

  constructor(
    url: string,
    private readonly statements: Statements,
  ) {
    const poolOf = (max: number) => newPool(url, max, statements.isPooled);
    this.#pools = { holders: poolOf(MOST.holders), others: poolOf(MOST.others) };
  }

  async acquire(purpose: Purpose): Promise<PostgresConnection> {
    try {
      for (;;) {
        const client = await this.#pools[purpose].connect();
        const generation = keptIn(this.#generations, client, () => this.#generation);
        const release = (isLost: boolean) => client.release(isLost || generation !== this.#generation);
        if (generation === this.#generation) return new PostgresConnection(client, this.statements, release);
        client.release(true);
      }
    } catch (error) {
      throw this.named(error);
    }
  }

  /**
   * Runs statements in one transaction and one round trip, and gives the rows of each. Our own server runs a single statement as a transaction.
   * Tries again once, and then until `patienceMs` have passed, if the connection was lost or the server rolled back for another transaction.
   */
  async transact(statements: readonly Statement[], patienceMs = 0): Promise<object[][]> {
    const startedAt = performance.now();
    for (let wait = FIRST_WAIT_MS; ; wait *= 2) {
      try {
        return await this.#transactOnce(statements);
      } catch (error) {
        const fault = this.named(error);
        const isOver = wait > FIRST_WAIT_MS && performance.now() - startedAt + wait > patienceMs;
        if (isOver || !(isConnectionLost(error) || isUndoneForAnother(error))) throw fault;
      }
      await setTimeout(wait);
    }
  }

  /** Names an error's fault. If a connection was lost, or the server may be a standby now (read-only), closes all earlier connections. */
  named(error: unknown): unknown {
    const fault = namedFault(error, faultOfPostgres(error));
    if (fault instanceof StoreUnavailableError && ["read-only", "unreachable"].includes(fault.fault))
      this.#generation++;
    if (isNameLost(error)) this.statements.forgetNames();
    return fault;
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()));
  }

  async #transactOnce(statements: readonly Statement[]): Promise<object[][]> {
    const connection = await this.acquire("others");
    const isAlone = statements.length === 1 && !this.statements.isPooled;
    const begun = isAlone ? [] : [connection.begin()];
    const asked = statements.map((statement) => connection.ask(statement));
    const sent = [...begun, ...asked, ...(isAlone ? [] : [connection.commit()])];
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

function newPool(url: string, max: number, isPooled: boolean): pg.Pool {
  const pool = new pg.Pool({
    ...clientConfig(url),
    ...(isPooled ? {} : { options: AT_CONNECT }),
    max,
    idleTimeoutMillis: IDLE_MS,
    query_timeout: SILENCE_MS,
    pipeline: true,
  });
  // The pool replaces a lost idle connection; otherwise the statements report the error.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
