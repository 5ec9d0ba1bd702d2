import { fstatSync, openSync, read, statSync } from "node:fs";
import { promisify } from "node:util";
import type { ForgottenPieces } from "./forgotten-pieces.js";

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
export async function areInGaps(file: string, pageSize: number, pieces: ForgottenPieces): Promise<boolean> {
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
  const key = `${dev}:${ino}`;
  const known = descriptors.get(key);
  if (known !== undefined) return known;
  const opened = openSync(file, "r");
  descriptors.set(key, opened);
  return opened;
}
