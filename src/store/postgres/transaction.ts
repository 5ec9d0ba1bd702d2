import type { ReadRows, Statement, UserTransaction } from "../database.js";
import type { User } from "../store.js";
import type { Connections, PostgresConnection } from "./connections.js";
import { isConnectionLost } from "./faults.js";
import { joined } from "./statements.js";

/** Later statements see everything that was committed before the lock was granted. */
const LOCK = `select id from scopes where tenant = $1 and user_id = $2 and agent_id = '' for update`;

/** A transaction that holds a user's row. The lock and the first queries share a round trip. */
export class PostgresTransaction implements UserTransaction {
  readonly #isLocked: Promise<boolean>;
  /** The first fault, which causes all later ones. */
  #failure: { readonly fault: unknown; readonly isLost: boolean } | null = null;
  /** The commit or rollback; null before it is sent. */
  #ending: Promise<unknown> | null = null;
  #isAnswered = false;

  constructor(
    private readonly connection: PostgresConnection,
    private readonly connections: Connections,
    { tenant, userId }: User,
  ) {
    void this.#answer(connection.begin());
    const rows = connection.ask({ text: LOCK, values: [tenant, userId] });
    this.#isLocked = this.#answer(rows.then(({ length }) => length > 0));
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
    if (!(await this.#isLocked)) throw new Error("a user without rows cannot be held: begin the scope first");
    this.#refuseEnded();
    const sent = statements.map((statement) => this.#answer(this.connection.ask(statement)));
    this.#ending = this.#answer(this.connection.commit());
    await Promise.all([...sent, this.#ending]);
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
}
