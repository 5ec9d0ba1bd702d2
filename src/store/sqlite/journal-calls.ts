import type { FirstTokenTime, MemoryId, Scope, UserId } from "../../core/index.js";
import type { DeletionCounts } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type {
  CountedDeletion,
  JournalDatabase,
  JournalUnit,
  RecordFilter,
  ResponseRow,
  WrittenUnit,
} from "../journal/journal-database.js";
import type { JournalReads } from "./journal-reads.js";
import type { JournalWrites } from "./journal-writes.js";

/** Calls that write; the group that they are in is one transaction. */
export type WriteName = Exclude<keyof JournalWrites, "takeErased">;
export type ReadName = keyof JournalReads;

type Method<T, Name extends keyof T> = Extract<T[Name], (...args: never[]) => unknown>;
type Arguments<T, Name extends keyof T> = Parameters<Method<T, Name>>;
export type ReadArguments<Name extends ReadName> = Arguments<JournalReads, Name>;
export type WriteArguments<Name extends WriteName> = Arguments<JournalWrites, Name>;
export type ReadResult<Name extends ReadName> = ReturnType<Method<JournalReads, Name>>;
export type WriteResult<Name extends WriteName> = ReturnType<Method<JournalWrites, Name>>;

/** A call of `JournalReads`. */
export interface ReadingCall {
  readonly name: ReadName;
  readonly args: ReadArguments<ReadName>;
}

/** A call of `JournalWrites`. */
export interface WritingCall {
  readonly name: WriteName;
  readonly args: WriteArguments<WriteName>;
}

/** `JournalDatabase` over two kinds of calls, of `JournalReads` and `JournalWrites`, wherever those run. */
export abstract class JournalCalls implements JournalDatabase {
  protected constructor(readonly sealKey: Buffer) {}

  protected abstract ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>>;
  protected abstract tell<Name extends WriteName>(
    name: Name,
    ...args: WriteArguments<Name>
  ): Promise<WriteResult<Name>>;
  abstract idle(): Promise<void>;
  abstract erased(): Promise<void>;
  abstract close(): Promise<void>;

  async write(unit: JournalUnit): Promise<WrittenUnit> {
    const [written] = await this.tell("writeTogether", [unit]);
    return written as WrittenUnit;
  }

  writeTogether = (units: readonly JournalUnit[]) => this.tell("writeTogether", units);
  deleteUser = (tenant: string, userId: UserId, deletion: CountedDeletion, erased: readonly string[]) =>
    this.tell("deleteUser", tenant, userId, deletion, erased);
  deletedFromSource = (tenant: string, userId: UserId, memoryId: MemoryId | null) =>
    this.tell("deletedFromSource", tenant, userId, memoryId);
  keepResponse = (
    scope: Scope,
    deletions: DeletionCounts,
    row: ResponseRow,
    continued: SealedDigest | null,
    most: number,
  ) => this.tell("keepResponse", scope, deletions, row, continued, most);
  keepFirstTokenTime = (engine: string, time: FirstTokenTime, most: number) =>
    this.tell("keepFirstTokenTime", engine, time, most);
  emptyLog = () => this.tell("emptyLog");

  load = (scope: Scope, conversation?: number) => this.ask("load", scope, conversation);
  versionOf = (scope: Scope) => this.ask("versionOf", scope);
  deletionsOf = (tenant: string, userId: UserId) => this.ask("deletionsOf", tenant, userId);
  scopesOf = (tenant: string, userId: UserId) => this.ask("scopesOf", tenant, userId);
  forgottenOf = (tenant: string, userId: UserId) => this.ask("forgottenOf", tenant, userId);
  list = (scopeId: number, filter: RecordFilter) => this.ask("list", scopeId, filter);
  read = (seqs: readonly number[]) => this.ask("read", seqs);
  withTurns = (scopeId: number, turns: readonly number[]) => this.ask("withTurns", scopeId, turns);
  withRequests = (of: { readonly tenant: string } | { readonly scopeId: number }, ids: readonly string[]) =>
    this.ask("withRequests", of, ids);
  scopesById = (ids: readonly number[]) => this.ask("scopesById", ids);
  counts = (scopeId: number) => this.ask("counts", scopeId);
  shared = (scopeId: number, digests: readonly SealedDigest[]) => this.ask("shared", scopeId, digests);
  sharedDigests = (scopeId: number) => this.ask("sharedDigests", scopeId);
  withMemory = (tenant: string, hash: number, after: number) => this.ask("withMemory", tenant, hash, after);
  writtenBefore = (before: number, after: number) => this.ask("writtenBefore", before, after);
  pendingInSource = (tenant: string, userId: UserId) => this.ask("pendingInSource", tenant, userId);
  usersPendingInSource = () => this.ask("usersPendingInSource");
  findResponse = (scopeId: number, id: SealedDigest) => this.ask("findResponse", scopeId, id);
  responsesOf = (scopeId: number) => this.ask("responsesOf", scopeId);
  countFirstTokenTimes = (engine: string) => this.ask("countFirstTokenTimes", engine);
  firstTokenTimes = (engine: string, count: number, most: number) => this.ask("firstTokenTimes", engine, count, most);
  ping = () => this.ask("ping");
}
