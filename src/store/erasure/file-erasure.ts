import { statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { faultOf } from "../api/store-faults.js";
import { eraseLog, type OpenDatabase } from "../database/open-database.js";
import { ForgottenPieces } from "./forgotten-pieces.js";
import { areInGaps } from "./page-gaps.js";

/** Milliseconds until a log that could not be emptied, or a file that was locked, is tried again … */
const AGAIN_MS = 1_000;
/** … and until anything is after a failure. */
const AFTER_FAILURE_MS = 60_000;
/** Milliseconds after opening until what an earlier process left undone is done: not while the first requests come. */
const RESUME_MS = 1_000;
/** A file of up to so many bytes is rewritten as soon as it must be: that takes under a second … */
const SMALL_FILE = 64 * 1024 * 1024;
/** … and a larger one no more often than this, in milliseconds: nothing else is done meanwhile. */
const BETWEEN_REWRITES_MS = 10 * 60_000;

/**
 * Makes sure that deleted text leaves the files too. `secure_delete` overwrites rows; the write-ahead log is emptied; and where SQLite has
 * left a copy in the gap of a page ({@link areInGaps}), the file is rewritten by VACUUM, which leaves no gaps' contents.
 *
 * `user_version` in the file's header counts deletions that are not known to be done with; it is set in the transaction of the deletion,
 * so that the next process goes on where this one was killed. It does not know the texts any more, and rewrites the file.
 */
export class FileErasure {
  #pieces = new ForgottenPieces();
  /** Deletions of this process that are counted in the file. */
  #counted = 0;
  /** What an earlier process, or another one, left counted. */
  #mustRewrite = false;
  #lastRewrite = Number.NEGATIVE_INFINITY;
  #working: Promise<void> | null = null;
  #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param beforeWork ends what is open on the connection */
  constructor(
    private readonly sqlite: OpenDatabase["sqlite"],
    private readonly beforeWork: () => void,
  ) {
    if (sqlite.memory || sqlite.readonly || this.#count() === 0) return;
    this.#mustRewrite = true;
    this.#later(RESUME_MS);
  }

  /** Counts a deletion; inside its transaction. */
  count(): void {
    if (!this.sqlite.memory) this.sqlite.pragma(`user_version = ${this.#count() + 1}`);
  }

  /** The deletion that was counted is committed. Empties the log at once, where nobody reads in it. */
  begin(deleted: ForgottenPieces): void {
    this.beforeWork();
    if (this.sqlite.memory) return;
    this.#counted++;
    this.#pieces.take(deleted);
    eraseLog(this.sqlite);
    this.#start();
  }

  /**
   * Resolves when everything deleted so far is out of the files; or when that is put off, because another process reads an older state
   * in the log, or because a large file was rewritten a short while ago.
   */
  done(): Promise<void> {
    if (this.#working === null) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** What is not done by now is the next process's. */
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
    // Several deletions in one turn of the event loop are looked for together.
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
        // A full disk, say. What was deleted stays deleted, and the file says that its erasure is not done.
        this.#pieces.take(pieces);
        return this.#later(faultOf(error) === "busy" ? AGAIN_MS : AFTER_FAILURE_MS);
      }
    }
  }

  /** Gives the milliseconds until it can go on; 0 where it can now. */
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
      // What is left is to empty the log of it, and then nothing of anybody's is to be done.
      this.#counted = this.#count();
      return 0;
    }
    this.beforeWork();
    // Of other processes there may be more.
    const uncount = () => this.sqlite.pragma(`user_version = ${Math.max(0, this.#count() - counted)}`);
    this.sqlite.transaction(uncount).immediate();
    this.#counted -= counted;
    return 0;
  }

  #waitForRewrite(): number {
    if (statSync(this.sqlite.name).size <= SMALL_FILE) return 0;
    return this.#lastRewrite + BETWEEN_REWRITES_MS - performance.now();
  }

  /** Nothing else is done meanwhile. */
  #rewrite(): void {
    this.beforeWork();
    // VACUUM's copy would else be a file outside of the data directory; a large one does not fit into memory.
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
