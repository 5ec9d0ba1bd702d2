/*
 * erasure/: deleted text leaves the log and the file's free space.
 * In: pieces of what was deleted, and the file as it is. Out: a file in which no piece of it is left.
 * Pieces are looked for in raw pages (`forgotten-pieces.ts`, `page-gaps.ts`); found ones make VACUUM rewrite the file.
 */

import { statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { type DatabaseConnection, eraseLog } from "../database/connection.js";
import { faultOf } from "../database/sqlite-faults.js";
import { ForgottenPieces } from "./forgotten-pieces.js";
import { areInGaps } from "./page-gaps.js";

/** Milliseconds between retries where the log could not be truncated or the file was locked … */
const AGAIN_MS = 1_000;
/** … and after any other failure. */
const AFTER_FAILURE_MS = 60_000;
/** Milliseconds after opening until an earlier process's pending erasure continues: not during the first requests. */
const RESUME_MS = 1_000;
/** Bytes up to which a file is rewritten at once: that takes under a second … */
const SMALL_FILE = 64 * 1024 * 1024;
/** … and milliseconds between two rewrites of a larger one: a rewrite blocks the process. */
const BETWEEN_REWRITES_MS = 10 * 60_000;

/**
 * Erases deleted text from the files. `secure_delete` overwrites rows; the write-ahead log is truncated; and where SQLite left a copy in the
 * unused gap of a page ({@link areInGaps}), VACUUM rewrites the file, gaps included.
 *
 * `user_version` in the file's header counts pending erasures. It is set in the deletion's transaction, so that the next process continues
 * after a kill; as that one no longer knows the texts, it rewrites the file.
 */
export class FileErasure {
  #pieces = new ForgottenPieces();
  /** Pending erasures of this process. */
  #counted = 0;
  /** Another process left erasures pending. */
  #mustRewrite = false;
  #lastRewrite = Number.NEGATIVE_INFINITY;
  #working: Promise<void> | null = null;
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param beforeWork ends the connection's open transaction */
  constructor(
    private readonly sqlite: DatabaseConnection["sqlite"],
    private readonly beforeWork: () => void,
  ) {
    if (sqlite.memory || sqlite.readonly || this.#count() === 0) return;
    this.#mustRewrite = true;
    this.#later(RESUME_MS);
  }

  /** Counts a pending erasure; inside the deletion's transaction. */
  count(): void {
    if (!this.sqlite.memory) this.sqlite.pragma(`user_version = ${this.#count() + 1}`);
  }

  /** The counted deletion is committed. Truncates the log at once, where no reader needs it. */
  begin(deleted: ForgottenPieces): void {
    this.beforeWork();
    if (this.sqlite.memory) return;
    this.#counted++;
    this.#pieces.take(deleted);
    eraseLog(this.sqlite);
    this.#start();
  }

  /**
   * Resolves when everything deleted so far is out of the files; or when that is deferred, because another process still reads the log, or
   * because a large file was rewritten a short while ago.
   */
  done(): Promise<void> {
    if (this.#working === null) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** What is pending is left to the next process. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#release();
  }

  #later(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), ms).unref();
  }

  #start(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
      this.#release();
    });
  }

  #release(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #work(): Promise<void> {
    // Deletions in one iteration of the event loop are handled together.
    await pause(0);
    while (!this.#isClosed && (this.#counted > 0 || this.#mustRewrite)) {
      const pieces = this.#pieces;
      this.#pieces = new ForgottenPieces();
      try {
        const wait = await this.#once(pieces);
        if (wait === 0) continue;
        this.#pieces.take(pieces);
        return this.#later(wait);
      } catch (error) {
        // A full disk, say. The rows stay deleted, and the file counts the erasure as pending.
        this.#pieces.take(pieces);
        return this.#later(faultOf(error) === "busy" ? AGAIN_MS : AFTER_FAILURE_MS);
      }
    }
  }

  /** Returns the milliseconds to wait before it can continue; 0: none. */
  async #once(pieces: ForgottenPieces): Promise<number> {
    this.beforeWork();
    if (!eraseLog(this.sqlite)) return AGAIN_MS;
    const counted = this.#counted;
    const pageSize = Number(this.sqlite.pragma("page_size", { simple: true }));
    this.#mustRewrite ||= pieces.isFull || (await areInGaps(this.sqlite.name, pageSize, pieces));
    if (this.#isClosed) return 0;
    if (this.#mustRewrite) {
      const wait = this.#waitForRewrite();
      if (wait > 0) return wait;
      this.#rewrite();
      // The rewrite did everybody's erasures; the next round truncates the log and resets the count.
      this.#counted = this.#count();
      return 0;
    }
    this.beforeWork();
    // Other processes may have counted more.
    const uncount = () => this.sqlite.pragma(`user_version = ${Math.max(0, this.#count() - counted)}`);
    this.sqlite.transaction(uncount).immediate();
    this.#counted -= counted;
    return 0;
  }

  #waitForRewrite(): number {
    if (statSync(this.sqlite.name).size <= SMALL_FILE) return 0;
    return this.#lastRewrite + BETWEEN_REWRITES_MS - performance.now();
  }

  /** Blocks the process. */
  #rewrite(): void {
    this.beforeWork();
    // In memory, as VACUUM's temporary file would be outside of the data directory; a large one does not fit.
    const isSmall = statSync(this.sqlite.name).size <= SMALL_FILE;
    this.sqlite.pragma(`temp_store = ${isSmall ? "MEMORY" : "DEFAULT"}`);
    this.sqlite.exec("VACUUM");
    this.#lastRewrite = performance.now();
    this.#mustRewrite = false;
    this.#pieces = new ForgottenPieces();
  }

  #count(): number {
    return Number(this.sqlite.pragma("user_version", { simple: true }));
  }
}
