import type { JournalDatabase, JournalUnit, WrittenUnit } from "../journal/journal-database.js";
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

  writeTogether: JournalDatabase["writeTogether"] = (...of) => this.tell("writeTogether", ...of);
  deleteUser: JournalDatabase["deleteUser"] = (...of) => this.tell("deleteUser", ...of);
  deletedFromSource: JournalDatabase["deletedFromSource"] = (...of) => this.tell("deletedFromSource", ...of);
  keepResponse: JournalDatabase["keepResponse"] = (...of) => this.tell("keepResponse", ...of);
  keepFirstTokenTime: JournalDatabase["keepFirstTokenTime"] = (...of) => this.tell("keepFirstTokenTime", ...of);
  emptyLog: JournalDatabase["emptyLog"] = (...of) => this.tell("emptyLog", ...of);

  load: JournalDatabase["load"] = (...of) => this.ask("load", ...of);
  versionOf: JournalDatabase["versionOf"] = (...of) => this.ask("versionOf", ...of);
  deletionsOf: JournalDatabase["deletionsOf"] = (...of) => this.ask("deletionsOf", ...of);
  scopesOf: JournalDatabase["scopesOf"] = (...of) => this.ask("scopesOf", ...of);
  forgottenOf: JournalDatabase["forgottenOf"] = (...of) => this.ask("forgottenOf", ...of);
  list: JournalDatabase["list"] = (...of) => this.ask("list", ...of);
  read: JournalDatabase["read"] = (...of) => this.ask("read", ...of);
  withTurns: JournalDatabase["withTurns"] = (...of) => this.ask("withTurns", ...of);
  withRequests: JournalDatabase["withRequests"] = (...of) => this.ask("withRequests", ...of);
  scopesById: JournalDatabase["scopesById"] = (...of) => this.ask("scopesById", ...of);
  counts: JournalDatabase["counts"] = (...of) => this.ask("counts", ...of);
  shared: JournalDatabase["shared"] = (...of) => this.ask("shared", ...of);
  sharedDigests: JournalDatabase["sharedDigests"] = (...of) => this.ask("sharedDigests", ...of);
  withMemory: JournalDatabase["withMemory"] = (...of) => this.ask("withMemory", ...of);
  writtenBefore: JournalDatabase["writtenBefore"] = (...of) => this.ask("writtenBefore", ...of);
  pendingInSource: JournalDatabase["pendingInSource"] = (...of) => this.ask("pendingInSource", ...of);
  usersPendingInSource: JournalDatabase["usersPendingInSource"] = (...of) => this.ask("usersPendingInSource", ...of);
  findResponse: JournalDatabase["findResponse"] = (...of) => this.ask("findResponse", ...of);
  responsesOf: JournalDatabase["responsesOf"] = (...of) => this.ask("responsesOf", ...of);
  countFirstTokenTimes: JournalDatabase["countFirstTokenTimes"] = (...of) => this.ask("countFirstTokenTimes", ...of);
  firstTokenTimes: JournalDatabase["firstTokenTimes"] = (...of) => this.ask("firstTokenTimes", ...of);
  ping: JournalDatabase["ping"] = (...of) => this.ask("ping", ...of);
}
