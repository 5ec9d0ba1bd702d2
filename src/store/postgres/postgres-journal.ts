/*
 * postgres/: the journal on a PostgreSQL server, for any number of processes.
 * In: calls of `JournalDatabase`. Out: rows in the schema `memstem`, and `StaleScopeError` or `StoreUnavailableError`.
 * `GroupWriter` collects units, `commitGroup` is one transaction of them; `RecordReads` and `UserReads` read, `SmallWrites` adds other writes,
 * `PostgresJournal` the units; `Connections` has the connections, `openPostgres` makes all of it. Hot SQL is written by hand; `schema.ts` is what migrations come from.
 */

import type { MemoryId, UserId } from "../../core/index.js";
import { DigestSeal } from "../database/digest-seal.js";
import type { CountedDeletion, JournalDatabase, JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { BackgroundVacuum } from "./background-vacuum.js";
import type { Connections } from "./connections.js";
import { GroupWriter } from "./group-writer.js";
import { LockKeys } from "./lock-keys.js";
import { SmallWrites } from "./small-writes.js";

/** A journal in PostgreSQL. */
export class PostgresJournal extends SmallWrites implements JournalDatabase {
  readonly #writer: GroupWriter;
  readonly #vacuum: BackgroundVacuum;

  constructor(
    connections: Connections,
    url: string,
    readonly sealKey: Buffer,
  ) {
    const keys = new LockKeys(new DigestSeal(() => sealKey));
    super(connections, keys);
    this.#writer = new GroupWriter(connections, keys);
    this.#vacuum = new BackgroundVacuum(url);
  }

  async write(unit: JournalUnit): Promise<WrittenUnit> {
    const [written] = await this.writeTogether([unit]);
    return written as WrittenUnit;
  }

  async writeTogether(units: readonly JournalUnit[]): Promise<readonly WrittenUnit[]> {
    if (units.length === 0) return [];
    const written = await this.#writer.write(units);
    if (units.some(({ erased }) => erased !== undefined)) this.#vacuum.request();
    return written;
  }

  override async deleteUser(tenant: string, userId: UserId, deletion: CountedDeletion): Promise<number> {
    const deleted = await super.deleteUser(tenant, userId, deletion);
    this.#vacuum.request();
    return deleted;
  }

  override async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    await super.deletedFromSource(tenant, userId, memoryId);
    this.#vacuum.request();
  }

  idle(): Promise<void> {
    return this.#writer.idle();
  }

  /** Resolves when the vacuums that erasures asked for have ended. */
  vacuumed(): Promise<void> {
    return this.#vacuum.done();
  }

  /** Nothing: the log is the server's. */
  async emptyLog(): Promise<void> {}

  /** Nothing: what a vacuum frees is overwritten when the server uses it. */
  async erased(): Promise<void> {}

  async ping(): Promise<void> {
    await this.connections.read({ text: "select 1" });
  }

  async close(): Promise<void> {
    await this.idle();
    await this.#vacuum.close();
    await this.connections.close();
  }
}
