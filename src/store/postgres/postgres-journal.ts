/*
 * postgres/: the journal on a PostgreSQL server, for any number of processes.
 * In: calls of `JournalDatabase`. Out: rows in the schema `memstem`, and `StaleScopeError` or `StoreUnavailableError`.
 * `GroupWriter` collects units, `commitGroup` is one transaction of them; `RecordReads` and `UserReads` read, `SmallWrites` does the rest;
 * `Connections` lends connections, `openPostgres` makes all of it. Hot SQL is written by hand; `schema.ts` is what migrations come from.
 */

import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts } from "../api/store.js";
import { DigestSeal, type SealedDigest } from "../database/digest-seal.js";
import type {
  CountedDeletion,
  JournalDatabase,
  JournalUnit,
  RecordFilter,
  ResponseRow,
  WrittenUnit,
} from "../journal/journal-database.js";
import { BackgroundVacuum } from "./background-vacuum.js";
import type { Connections } from "./connections.js";
import { GroupWriter } from "./group-writer.js";
import { LockKeys } from "./lock-keys.js";
import { RecordReads } from "./record-reads.js";
import { SmallWrites } from "./small-writes.js";
import { UserReads } from "./user-reads.js";

/** A journal in PostgreSQL. */
export class PostgresJournal implements JournalDatabase {
  readonly #keys: LockKeys;
  readonly #writer: GroupWriter;
  readonly #records: RecordReads;
  readonly #users: UserReads;
  readonly #others: SmallWrites;
  readonly #vacuum: BackgroundVacuum;

  constructor(
    private readonly connections: Connections,
    url: string,
    readonly sealKey: Buffer,
  ) {
    this.#keys = new LockKeys(new DigestSeal(() => sealKey));
    this.#writer = new GroupWriter(connections, this.#keys);
    this.#records = new RecordReads(connections);
    this.#users = new UserReads(connections);
    this.#others = new SmallWrites(connections, this.#keys);
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

  async deleteUser(tenant: string, userId: UserId, deletion: CountedDeletion): Promise<number> {
    const deleted = await this.#others.deleteUser(tenant, userId, deletion);
    this.#vacuum.request();
    return deleted;
  }

  async deletedFromSource(tenant: string, userId: UserId, memoryId: MemoryId | null): Promise<void> {
    await this.#others.deletedFromSource(tenant, userId, memoryId);
    this.#vacuum.request();
  }

  load(scope: Scope, conversation?: number) {
    return this.#records.load(scope, this.#keys.bucketOf(scope), conversation);
  }

  versionOf(scope: Scope) {
    return this.#records.versionOf(scope);
  }

  deletionsOf(tenant: string, userId: UserId) {
    return this.#users.deletionsOf(this.#keys.bucketOf({ tenant, userId }));
  }

  scopesOf(tenant: string, userId: UserId) {
    return this.#users.scopesOf(tenant, userId);
  }

  forgottenOf(tenant: string, userId: UserId) {
    return this.#users.forgottenOf(tenant, userId);
  }

  list(scopeId: number, filter: RecordFilter) {
    return this.#records.list(scopeId, filter);
  }

  read(seqs: readonly number[]) {
    return this.#records.read(seqs);
  }

  withTurns(scopeId: number, turns: readonly number[]) {
    return this.#records.withTurns(scopeId, turns);
  }

  withRequests(of: { readonly tenant: string } | { readonly scopeId: number }, ids: readonly string[]) {
    return this.#records.withRequests(of, ids);
  }

  scopesById(ids: readonly number[]) {
    return this.#users.scopesById(ids);
  }

  counts(scopeId: number) {
    return this.#records.counts(scopeId);
  }

  shared(scopeId: number, digests: readonly SealedDigest[]) {
    return this.#users.shared(scopeId, digests);
  }

  sharedDigests(scopeId: number) {
    return this.#users.sharedDigests(scopeId);
  }

  withMemory(tenant: string, hash: number, after: number) {
    return this.#users.withMemory(tenant, hash, after);
  }

  writtenBefore(before: number, after: number) {
    return this.#users.writtenBefore(before, after);
  }

  pendingInSource(tenant: string, userId: UserId) {
    return this.#users.pendingInSource(tenant, userId);
  }

  usersPendingInSource() {
    return this.#users.usersPendingInSource();
  }

  findResponse(scopeId: number, id: SealedDigest) {
    return this.#others.findResponse(scopeId, id);
  }

  responsesOf(scopeId: number) {
    return this.#others.responsesOf(scopeId);
  }

  keepResponse(
    scope: Scope,
    deletions: DeletionCounts,
    row: ResponseRow,
    continued: SealedDigest | null,
    most: number,
  ): Promise<void> {
    return this.#others.keepResponse(scope, deletions, row, continued, most);
  }

  countFirstTokenTimes(engine: string) {
    return this.#others.countFirstTokenTimes(engine);
  }

  firstTokenTimes(engine: string, count: number, most: number) {
    return this.#others.firstTokenTimes(engine, count, most);
  }

  keepFirstTokenTime(engine: string, time: FirstTokenTime, most: number): Promise<void> {
    return this.#others.keepFirstTokenTime(engine, time, most);
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
