import { setTimeout } from "node:timers/promises";
import type { ReadRows, Statement, UserTransaction } from "../database.js";
import type { User } from "../store.js";
import type { Connections, PostgresConnection } from "./connections.js";
import { isConnectionLost } from "./faults.js";
import { joined } from "./statements.js";

/** The user's locked row, and the transaction's id, by which its outcome is found later. */
interface LockedRow {
  readonly id: number;
  readonly xid: string;
}

/** Later statements see everything that was committed before the lock was granted. */
const LOCK = `select id, pg_current_xact_id()::text as xid from scopes
  where tenant = $1 and user_id = $2 and agent_id = '' for update`;

const OUTCOME = "select pg_xact_status($1::xid8) as status";

/** Whether the transaction changed this user. After a crash, the server reuses the ids of lost transactions. */
const TRACE = `select not exists (select from scopes where id = $1)
  or exists (select from scopes where tenant = $2 and user_id = $3 and xmin = $4::xid8::xid)
  or exists (select from scopes s join changes c on c.scope_id = s.id
    where s.tenant = $2 and s.user_id = $3 and c.xmin = $4::xid8::xid) as "isThere"`;

/** Empty if the server gave no answer. */
interface OutcomeRow {
  readonly status?: "committed" | "aborted" | "in progress" | null;
  readonly isThere?: number;
}

/** Limit for finding a commit's outcome, and the wait between attempts. */
const OUTCOME_MS = 2_000;
const OUTCOME_WAIT_MS = 50;

/** A transaction that holds a user's row. The lock and the first queries share a round trip. */
export class PostgresTransaction implements UserTransaction {
  readonly #locked: Promise<LockedRow | undefined>;
  /** The first fault, which causes all later ones. */
  #failure: { readonly fault: unknown; readonly isLost: boolean } | null = null;
  /** The commit or rollback; null before it is sent. */
  #ending: Promise<unknown> | null = null;
  #isAnswered = false;

  constructor(
    private readonly connection: PostgresConnection,
    private readonly connections: Connections,
    private readonly user: User,
  ) {
    void this.#answer(connection.begin());
    const rows = connection.ask<LockedRow>({ text: LOCK, values: [user.tenant, user.userId] });
    this.#locked = this.#answer(rows.then(([row]) => row));
  }

  /** Whether the connection was lost before any answer: nothing was read or done. */
  get isLostUnused(): boolean {
    return this.#failure?.isLost === true && !this.#isAnswered;
  }

  readonly read: ReadRows = <R extends object>(text: string, values: Statement["values"]) => {
    this.#refuseEnded();
    return this.#answer(this.connection.ask<R>({ text, values }));
  };

  async commit(given: readonly Statement[], how: "apart" | "in order" = "in order"): Promise<void> {
    const statements = how === "apart" ? joined(given) : given;
    const locked = await this.#locked;
    if (locked === undefined) throw new Error("a user without rows cannot be held: begin the scope first");
    this.#refuseEnded();
    const sent = statements.map((statement) => this.#answer(this.connection.ask(statement)));
    this.#ending = this.#answer(this.connection.commit());
    try {
      await Promise.all([...sent, this.#ending]);
    } catch (fault) {
      if (this.#failure?.isLost !== true || !(await this.#isStored(locked))) throw fault;
    }
  }

  /** Rolls back unless committed, and returns the connection. */
  async end(): Promise<void> {
    this.#ending ??= this.#answer(this.connection.rollback());
    await this.#ending.catch(() => {});
    this.connection.release(this.#failure?.isLost === true);
  }

  #refuseEnded(): void {
    if (this.#ending !== null) throw new Error("the transaction has ended");
  }

  /** Rejects with the transaction's first fault. A caller need not await it. */
  #answer<T>(sent: Promise<T>): Promise<T> {
    void sent.then(() => (this.#isAnswered = true)).catch(() => {});
    const answer = sent.catch((error: unknown) => {
      this.#failure ??= { fault: this.connections.named(error), isLost: isConnectionLost(error) };
      throw this.#failure.fault;
    });
    answer.catch(() => {});
    return answer;
  }

  /** Whether a commit is stored although its answer was lost. False if the server does not confirm it in time. */
  async #isStored({ id, xid }: LockedRow): Promise<boolean> {
    const { tenant, userId } = this.user;
    const questions = [
      { text: OUTCOME, values: [xid] },
      { text: TRACE, values: [id, tenant, userId, xid] },
    ];
    const deadline = performance.now() + OUTCOME_MS;
    while (performance.now() < deadline) {
      const answers = (await this.connections.transact(questions).catch(() => [])) as OutcomeRow[][];
      const { status, isThere } = Object.assign({}, ...answers.flat()) as OutcomeRow;
      if (status !== undefined && status !== "in progress") return status === "committed" && isThere === 1;
      await setTimeout(OUTCOME_WAIT_MS);
    }
    return false;
  }
}
