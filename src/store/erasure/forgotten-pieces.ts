import { keptIn } from "../../core/text/collections.js";

/** Bytes of one piece. Any remainder of twice that length contains a whole one. */
const PIECE = 16;
/** Bytes; a shorter text is too common to be searched for. */
const SHORTEST_TEXT = 6;
/** Most pieces of one text, spread evenly over it: most of a text longer than a page fills pages of its own. */
const MOST_OF_A_TEXT = 256;
/** Most pieces in all; past that nothing is searched, and the texts count as found. */
const MOST_PIECES = 250_000;
const FILTER_BITS = 20;

/**
 * Pieces of deleted texts, to find remains of them in raw bytes. Pieces and not whole texts, because deleted rows are often partly
 * overwritten.
 */
export class ForgottenPieces {
  /** By a piece's first four bytes, as a number. */
  readonly #pieces = new Map<number, Buffer[]>();
  /** A Bloom filter of those numbers: rules out most offsets. */
  readonly #filter = new Uint8Array(2 ** (FILTER_BITS - 3));
  #size = 0;

  /** Whether there are too many pieces to search for. */
  get isFull(): boolean {
    return this.#size >= MOST_PIECES;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** Adds a text in both stored forms: plain, and escaped in JSON. */
  add(text: string): void {
    this.#addBytes(text);
    const inJson = JSON.stringify(text).slice(1, -1);
    if (inJson !== text) this.#addBytes(inJson);
  }

  /** Adds every string of stored JSON that is longer than names and roles, which are common to all. */
  addJson(value: unknown): void {
    if (typeof value === "string") {
      if (value.length >= PIECE) this.add(value);
    } else if (typeof value === "object" && value !== null)
      for (const inner of Object.values(value)) this.addJson(inner);
  }

  /** Adds another's pieces. */
  take(other: ForgottenPieces): void {
    for (const pieces of other.#pieces.values()) for (const piece of pieces) if (!this.isFull) this.#addPiece(piece);
  }

  /** Whether `bytes` contain one of the pieces in `[begin, end)`. */
  isIn(bytes: Buffer, begin: number, end: number): boolean {
    const filter = this.#filter;
    for (let at = begin; at + 4 <= end; at++) {
      const first = bytes.readInt32LE(at);
      const bit = scrambled(first);
      if (((filter[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) continue;
      for (const piece of this.#pieces.get(first) ?? []) {
        if (at + piece.length <= end && piece.compare(bytes, at, at + piece.length) === 0) return true;
      }
    }
    return false;
  }

  #addBytes(text: string): void {
    const bytes = Buffer.from(text);
    if (bytes.length < SHORTEST_TEXT || this.isFull) return;
    if (bytes.length < PIECE) {
      this.#addPiece(bytes);
      return;
    }
    const whole = Math.floor(bytes.length / PIECE);
    const step = Math.max(1, whole / MOST_OF_A_TEXT);
    for (let n = 0; n < whole && !this.isFull; n += step) {
      const at = Math.floor(n) * PIECE;
      this.#addPiece(bytes.subarray(at, at + PIECE));
    }
  }

  #addPiece(piece: Buffer): void {
    const first = piece.readInt32LE(0);
    const known = keptIn(this.#pieces, first, () => []);
    if (known.some((other) => other.equals(piece))) return;
    known.push(piece);
    const bit = scrambled(first);
    this.#filter[bit >>> 3] = (this.#filter[bit >>> 3] ?? 0) | (1 << (bit & 7));
    this.#size++;
  }
}

/** Fibonacci hashing. */
function scrambled(number: number): number {
  return Math.imul(number, 0x9e3779b1) >>> (32 - FILTER_BITS);
}
