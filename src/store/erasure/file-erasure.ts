/*
 * erasure/: deleted text leaves the log and the file's free space.
 * In: pieces of what was deleted, and the file as it is. Out: a file in which no piece of it is left.
 * Pieces are looked for in raw pages (`forgotten-pieces.ts`, `PageGaps`); found ones make VACUUM rewrite the file.
 */

import { fstatSync, openSync, read, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { keptIn } from "../../core/text/collections.js";
import { type DatabaseConnection, eraseLog } from "../database/open-database.js";
import { faultOf } from "../database/sqlite-faults.js";
import { ForgottenPieces } from "./forgotten-pieces.js";

const readAsync = promisify(read);

/** Bytes per read: searching them takes at most about a millisecond. */
const BYTES_AT_ONCE = 256 * 1024;
const FILE_HEADER = 100;
/** Kinds of b-tree pages: interior and leaf, of indexes and of tables. */
const INTERIOR_PAGES: readonly number[] = [2, 5];
const LEAF_PAGES: readonly number[] = [10, 13];

/**
 * Descriptors of database files, by device and inode. Kept open until the process ends: closing any descriptor of a file releases all POSIX
 * locks that the process has on it, those of SQLite's connections among them
 * (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_). Bounded by the number of database
 * files that the process erases from.
 */
const descriptors = new Map<string, number>();

/**
 * Whether a gap of the file's b-tree pages contains a piece: the unallocated bytes between a page's cell pointers and its cells
 * (https://sqlite.org/fileformat2.html#b_tree_pages). When SQLite moves rows between pages, it leaves a copy there, which `secure_delete`
 * does not overwrite later. Gaps are never copied to other pages, so what is not found now does not reappear. Reads asynchronously, piece by
 * piece. The write-ahead log must have been truncated after the deletion.
 *
 * @param pageSize bytes
 */
async function areInGaps(file: string, pageSize: number, pieces: ForgottenPieces): Promise<boolean> {
  if (pieces.isEmpty) return false;
  const descriptor = descriptorOf(file);
  const zeros = Buffer.alloc(pageSize);
  const buffer = Buffer.alloc(Math.max(pageSize, BYTES_AT_ONCE));
  for (let position = 0; position < fstatSync(descriptor).size; position += buffer.length) {
    const { bytesRead } = await readAsync(descriptor, buffer, 0, buffer.length, position);
    for (let at = 0; at + pageSize <= bytesRead; at += pageSize) {
      const [begin, end] = gapOf(buffer, at, pageSize, position + at === 0 ? FILE_HEADER : 0);
      if (begin >= end || buffer.compare(zeros, 0, end - begin, begin, end) === 0) continue;
      if (pieces.isIn(buffer, begin, end)) return true;
    }
  }
  return false;
}

/** The gap of a page, in bytes of the buffer; empty for a page of another kind. */
function gapOf(bytes: Buffer, at: number, pageSize: number, before: number): readonly [begin: number, end: number] {
  const header = at + before;
  const type = bytes[header] ?? 0;
  const isInterior = INTERIOR_PAGES.includes(type);
  if (!isInterior && !LEAF_PAGES.includes(type)) return [at, at];
  const begin = header + (isInterior ? 12 : 8) + 2 * bytes.readUInt16BE(header + 3);
  // 0 stands for 65,536.
  const end = at + (bytes.readUInt16BE(header + 5) || 65_536);
  return [begin, Math.min(end, at + pageSize)];
}

function descriptorOf(file: string): number {
  const { dev, ino } = statSync(file);
  return keptIn(descriptors, `${dev}:${ino}`, () => openSync(file, "r"));
}

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
