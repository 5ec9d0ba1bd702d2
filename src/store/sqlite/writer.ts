import { openSync, readSync, statSync } from "node:fs";
import { keptIn } from "../../core/text/collections.js";
import { messageOf } from "../../core/text/thrown.js";
import type { SqlValue, Statement } from "../database.js";
import { type StoreFault, StoreUnavailableError } from "../store.js";
import { type Connection, sleep } from "./connection.js";

/** A transaction's outcome in a form that crosses threads, where an error loses its class. Null: stored. */
export type Outcome = null | { readonly fault: StoreFault; readonly cause: string } | { readonly bug: Error };

/** Calls of a connection to a file, on any thread. */
export type FileCall =
  | { readonly ask: "write"; readonly transactions: readonly (readonly Statement[])[] }
  | { readonly ask: "erase"; readonly texts: readonly string[] }
  | { readonly ask: "read"; readonly text: string; readonly values: readonly SqlValue[] }
  | { readonly ask: "close" };

/** `write`: the writer; `read`: queries over many rows, so that no compose waits for the dashboard's sums. */
export interface ThreadData {
  readonly file: string;
  readonly purpose: "write" | "read";
}

/** An outcome per transaction, or of the query; whether deleted text is out of the files; the query's rows. */
export interface FileAnswer {
  readonly outcomes?: readonly Outcome[];
  readonly isErased?: boolean;
  readonly rows?: readonly object[];
}

/** Transactions between two checkpoints: some 4 MB of log. */
const BETWEEN_CHECKPOINTS = 512;
/** Milliseconds for which an erasure waits for readers. */
const READERS_MS = 1_000;
const AGAIN_MS = 20;
/** A file is searched for the longest texts; for so many bytes of each, as a page may hold no more; and read in chunks. */
const MOST_TEXTS = 16;
const BEGINNING = 64;
const READ_AT_ONCE = 1 << 20;

/** Writes to a file. The transactions of one call become one in the file. */
export class Writer {
  #sinceCheckpoint = 0;

  constructor(private readonly connection: Connection) {}

  answer(call: FileCall): FileAnswer {
    if (call.ask === "write") return { outcomes: this.write(call.transactions) };
    if (call.ask === "erase") return { isErased: this.erase(call.texts) };
    if (call.ask === "close") return {};
    try {
      return { rows: this.connection.read(call.text, call.values) };
    } catch (error) {
      return { outcomes: [outcomeOf(error)] };
    }
  }

  /** Durable when it returns. If one fails, each gets its own transaction. */
  write(transactions: readonly (readonly Statement[])[]): Outcome[] {
    try {
      this.#run(transactions.flat());
      this.#checkpoint(transactions.length);
      return transactions.map(() => null);
    } catch (error) {
      if (transactions.length === 1) return [outcomeOf(error)];
      return transactions.flatMap((one) => this.write([one]));
    }
  }

  /**
   * Takes deleted text out of the files. `secure_delete` overwrites deleted rows, but the free space of a rebalanced page may hold a copy: the
   * file is searched, and rewritten if one is found. An unfinished erasure is marked in `user_version`, and finished when the file is opened.
   */
  erase(texts: readonly string[]): boolean {
    const { connection } = this;
    if (connection.sqlite.memory) return true;
    const isLeft = isErasureLeft(connection);
    connection.sqlite.pragma("user_version = 1");
    if (!this.#emptyLog()) return false;
    try {
      // The texts of an earlier, unfinished erasure are unknown now.
      if (isLeft || isIn(connection.sqlite.name, texts)) rewrite(connection);
      connection.sqlite.pragma("user_version = 0");
      return this.#emptyLog();
    } catch {
      return false;
    }
  }

  #run(statements: readonly Statement[]): void {
    this.connection.transaction(() => {
      for (const statement of statements) this.connection.run(statement);
    });
  }

  #emptyLog(): boolean {
    for (const deadline = performance.now() + READERS_MS; ; sleep(AGAIN_MS)) {
      if (this.connection.emptyLog()) return true;
      if (performance.now() >= deadline) return false;
    }
  }

  /** Nobody else writes meanwhile, so the whole log is copied and restarts: it stays short. */
  #checkpoint(transactions: number): void {
    this.#sinceCheckpoint += transactions;
    if (this.#sinceCheckpoint < BETWEEN_CHECKPOINTS) return;
    this.#sinceCheckpoint = 0;
    try {
      this.connection.sqlite.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // The log is durable. The next transaction reports the disk's fault.
    }
  }
}

/** Finishes an earlier process's erasure, and empties the log. Throws SQLite's errors. */
export function finishErasure(connection: Connection): void {
  if (isErasureLeft(connection)) {
    rewrite(connection);
    connection.sqlite.pragma("user_version = 0");
  }
  connection.emptyLog();
}

function isErasureLeft({ sqlite }: Connection): boolean {
  return sqlite.pragma("user_version", { simple: true }) !== 0;
}

function rewrite({ sqlite }: Connection): void {
  // VACUUM's temporary file would be outside of the data directory.
  sqlite.pragma("temp_store = MEMORY");
  sqlite.exec("vacuum");
}

/**
 * Descriptors of files that were searched, by device and inode. They stay open: closing one would release the locks of every connection in
 * this process (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
 */
const descriptors = new Map<string, number>();

function descriptorOf(file: string): number {
  const { dev, ino } = statSync(file);
  return keptIn(descriptors, `${dev}:${ino}`, () => openSync(file, "r"));
}

/** Whether a file contains the beginning of one of the texts, plain or escaped in JSON. */
function isIn(file: string, texts: readonly string[]): boolean {
  const longest = [...texts].sort((a, b) => b.length - a.length).slice(0, MOST_TEXTS);
  const forms = new Set(longest.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]));
  const needles = [...forms].filter((form) => form !== "").map((form) => Buffer.from(form).subarray(0, BEGINNING));
  if (needles.length === 0) return false;
  const descriptor = descriptorOf(file);
  const bytes = Buffer.alloc(READ_AT_ONCE + BEGINNING);
  for (let at = 0; ; at += READ_AT_ONCE) {
    const read = readSync(descriptor, bytes, 0, bytes.length, at);
    const piece = bytes.subarray(0, read);
    if (needles.some((needle) => piece.includes(needle))) return true;
    if (read < bytes.length) return false;
  }
}

function outcomeOf(error: unknown): Outcome {
  // On another thread, SQLite's errors are not errors any more.
  if (!(error instanceof StoreUnavailableError)) return { bug: new Error(messageOf(error)) };
  return { fault: error.fault, cause: error.cause instanceof Error ? error.cause.message : "" };
}

export function throwOutcome(outcome: Outcome): void {
  if (outcome === null) return;
  if ("bug" in outcome) throw outcome.bug;
  throw new StoreUnavailableError(outcome.fault, { cause: new Error(outcome.cause) });
}
