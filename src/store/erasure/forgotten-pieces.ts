/** Bytes of one piece. Of what is left of a text, twice as many in a row are sure to hold one. */
const PIECE = 16;
/** A shorter text is everybody's word. */
const SHORTEST_TEXT = 6;
/** Of a text longer than a page these many pieces are looked for, spread over it: most of it stands in pages that hold nothing else. */
const MOST_OF_A_TEXT = 256;
/** Pieces past which nothing is looked for: it is taken as found. */
const MOST_PIECES = 250_000;
const FILTER_BITS = 20;

/**
 * Pieces of texts that were deleted, to find again in raw bytes whatever is left of them. Deleted rows are often cut into: that is why
 * pieces are looked for and not texts.
 */
export class ForgottenPieces {
  /** By the number that a piece's first four bytes make. */
  readonly #pieces = new Map<number, Buffer[]>();
  /** Bits of those numbers, scrambled: most places are passed over by looking here. */
  readonly #filter = new Uint8Array(2 ** (FILTER_BITS - 3));
  #size = 0;

  /** Whether these are more than are looked for. */
  get isFull(): boolean {
    return this.#size >= MOST_PIECES;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** Adds a text in both forms in which it is stored: as it is, and inside JSON. */
  add(text: string): void {
    this.#addBytes(text);
    const inJson = JSON.stringify(text).slice(1, -1);
    if (inJson !== text) this.#addBytes(inJson);
  }

  /** Adds the texts of stored JSON: every string in it that is longer than the names and roles which everybody's has. */
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

  /** Whether one of the pieces stands between two places of some bytes. */
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
    const known = this.#pieces.get(first);
    if (known?.some((other) => other.equals(piece))) return;
    if (known === undefined) this.#pieces.set(first, [piece]);
    else known.push(piece);
    const bit = scrambled(first);
    this.#filter[bit >>> 3] = (this.#filter[bit >>> 3] ?? 0) | (1 << (bit & 7));
    this.#size++;
  }
}

/** Fibonacci hashing. */
function scrambled(number: number): number {
  return Math.imul(number, 0x9e3779b1) >>> (32 - FILTER_BITS);
}
