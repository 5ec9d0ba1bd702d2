import type Database from "better-sqlite3";
import { messageOf } from "../../core/text/thrown.js";
import { StaleScopeError, type StoreFault, StoreUnavailableError } from "../api/store.js";
import type { DatabaseConnection } from "../database/open-database.js";
import { faultOf } from "../database/sqlite-faults.js";
import { FileErasure } from "../erasure/file-erasure.js";
import type { ForgottenPieces } from "../erasure/forgotten-pieces.js";
import { JournalWrites } from "./journal-writes.js";

/** Calls that write; the group that they are in is one transaction. */
export type WriteName = Exclude<keyof JournalWrites, "takeErased">;
export type WriteArguments<Name extends WriteName> = Parameters<JournalWrites[Name]>;
export type WriteResult<Name extends WriteName> = ReturnType<JournalWrites[Name]>;

/** A call of `JournalWrites`. */
export interface WritingCall {
  readonly name: WriteName;
  readonly args: WriteArguments<WriteName>;
}

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

function causeOf(error: unknown): string {
  if (error instanceof StoreUnavailableError && error.cause instanceof Error) return error.cause.message;
  return messageOf(error);
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

interface Applied {
  readonly outcomes: Outcome[];
  readonly erased: ForgottenPieces | null;
}

/** Applies calls to a file, those that come together in one transaction, and erases what they left in its free space. */
export class JournalWriter {
  readonly #writes: JournalWrites;
  readonly #erasure: FileErasure;

  constructor(private readonly database: DatabaseConnection) {
    this.#writes = new JournalWrites(database);
    // No transaction is open between calls.
    this.#erasure = new FileErasure(database.sqlite, () => {});
  }

  /**
   * Applies calls in one transaction, durable when this returns. One that is stale changes nothing; where one throws anything else, nothing
   * of the transaction is kept, and each call gets one of its own. Throws where another process holds the file locked: nothing was tried.
   */
  run(calls: readonly WritingCall[]): Outcome[] {
    let applied: Applied;
    try {
      applied = this.#together(calls);
    } catch (error) {
      if (faultBehind(error) === "busy") throw error;
      return calls.length === 1 ? [outcomeOfError(error)] : calls.flatMap((call) => this.#alone(call));
    }
    if (applied.erased !== null) this.#erasure.begin(applied.erased);
    return applied.outcomes;
  }

  /** See `JournalDatabase.erased`. */
  erased(): Promise<void> {
    return this.#erasure.done();
  }

  /** What is left to erase is left to the next process. */
  close(): void {
    this.#erasure.close();
  }

  #alone(call: WritingCall): Outcome[] {
    try {
      return this.run([call]);
    } catch (error) {
      return [outcomeOfError(error)];
    }
  }

  #together(calls: readonly WritingCall[]): Applied {
    const { sqlite } = this.database;
    this.#writes.takeErased();
    sqlite.exec("begin immediate");
    try {
      const outcomes = calls.map((call) => this.#one(call));
      const erased = this.#writes.takeErased();
      if (erased !== null) this.#erasure.count();
      sqlite.exec("commit");
      return { outcomes, erased };
    } catch (error) {
      // Some errors, a full disk's for one, have rolled it back.
      if (sqlite.inTransaction) sqlite.exec("rollback");
      throw error;
    }
  }

  #one({ name, args }: WritingCall): Outcome {
    try {
      const method = this.#writes[name] as (...args: readonly unknown[]) => unknown;
      return { value: Reflect.apply(method, this.#writes, args) };
    } catch (error) {
      if (error instanceof StaleScopeError) return outcomeOfError(error);
      throw error;
    }
  }
}

/** Calls between two checkpoints: some 4 MB of log. */
const CALLS_BETWEEN = 512;

/**
 * Checkpoints the write-ahead log from the thread that writes it, after an answer was given. Nobody else writes meanwhile, so the whole log
 * is copied and begins again: it stays short.
 */
export class LogCheckpoints {
  #calls = 0;

  constructor(private readonly sqlite: Database.Database) {}

  /** To be called after each transaction, with the number of calls in it. */
  wrote(calls: number): void {
    this.#calls += calls;
    if (this.#calls < CALLS_BETWEEN) return;
    this.#calls = 0;
    try {
      this.sqlite.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // What is in the log is durable. The next transaction reports the disk's fault.
    }
  }
}
