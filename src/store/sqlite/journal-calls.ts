import { StaleScopeError, type StoreFault, StoreUnavailableError } from "../api/store.js";
import type { DatabaseConnection } from "../database/open-database.js";
import { faultOf, throwNamed } from "../database/sqlite-faults.js";
import type { JournalDatabase, JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { JournalReads } from "./journal-reads.js";
import type { JournalWrites } from "./journal-writes.js";

/** How a call went, as it crosses threads: errors as data, since an error loses its class there. */
export type Outcome =
  | { readonly value: unknown }
  | { readonly problem: "stale" }
  | { readonly problem: StoreFault; readonly cause: string }
  | { readonly problem: "bug"; readonly message: string; readonly stack: string | undefined };

/** The fault that an error stands for, named by us or by SQLite; null for any other error. */
export function faultBehind(error: unknown): StoreFault | null {
  return error instanceof StoreUnavailableError ? error.fault : faultOf(error);
}

export function outcomeOfError(error: unknown): Outcome {
  if (error instanceof StaleScopeError) return { problem: "stale" };
  const fault = faultBehind(error);
  if (fault !== null) return { problem: fault, cause: causeOf(error) };
  if (error instanceof Error) return { problem: "bug", message: error.message, stack: error.stack };
  return { problem: "bug", message: String(error), stack: undefined };
}

/** The call's value; throws what it threw. */
export function resultOf(outcome: Outcome): unknown {
  if (!("problem" in outcome)) return outcome.value;
  if (outcome.problem === "stale") throw new StaleScopeError("the scope was changed by another process");
  if (outcome.problem !== "bug") throw new StoreUnavailableError(outcome.problem, { cause: new Error(outcome.cause) });
  const error = new Error(outcome.message);
  if (outcome.stack !== undefined) error.stack = outcome.stack;
  throw error;
}

function causeOf(error: unknown): string {
  if (error instanceof StoreUnavailableError && error.cause instanceof Error) return error.cause.message;
  return error instanceof Error ? error.message : String(error);
}

/** Calls that write; the group that they are in is one transaction. */
export type WriteName = Exclude<keyof JournalWrites, "takeErased">;
export type ReadName = keyof JournalReads;

type Method<T, Name extends keyof T> = Extract<T[Name], (...args: never[]) => unknown>;
type Arguments<T, Name extends keyof T> = Parameters<Method<T, Name>>;
export type ReadArguments<Name extends ReadName> = Arguments<JournalReads, Name>;
export type WriteArguments<Name extends WriteName> = Arguments<JournalWrites, Name>;
export type ReadResult<Name extends ReadName> = ReturnType<Method<JournalReads, Name>>;
export type WriteResult<Name extends WriteName> = ReturnType<Method<JournalWrites, Name>>;

/** A call of `JournalWrites`. */
export interface WritingCall {
  readonly name: WriteName;
  readonly args: WriteArguments<WriteName>;
}

/** `JournalDatabase` over calls of `JournalReads`, on the calling thread, and of `JournalWrites`, wherever those run. */
export abstract class JournalCalls implements JournalDatabase {
  readonly sealKey: Buffer;
  readonly #reads: JournalReads;

  protected constructor(database: DatabaseConnection) {
    this.sealKey = database.digests.key;
    this.#reads = new JournalReads(database);
  }

  protected async ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>> {
    try {
      const method = this.#reads[name] as (...args: readonly unknown[]) => ReadResult<Name>;
      return Reflect.apply(method, this.#reads, args);
    } catch (error) {
      throwNamed(error);
    }
  }

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

/** What the thread is asked; `close` has no answer but the thread's end. */
export type ThreadCall =
  | { readonly id: number; readonly ask: "write"; readonly calls: readonly WritingCall[] }
  | { readonly id: number; readonly ask: "erased" }
  | { readonly id: number; readonly ask: "close" };

/** An outcome for each call, in their order. */
export interface ThreadAnswer {
  readonly id: number;
  readonly outcomes: readonly Outcome[];
}
