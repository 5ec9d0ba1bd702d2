import { endOfAsciiPiece } from "./ascii-pieces.js";

/** Most characters of a piece whose count is kept. */
const LONGEST_KEPT = 32;
/** Pieces of one generation: two are kept, some 2 MB. */
const PIECES = 8_192;

interface CountedPiece {
  readonly piece: string;
  readonly tokens: number;
}

/**
 * Counts of a tokenizer's pieces, the words into which it splits a text before it merges bytes: the pieces of most texts were counted before,
 * and tokens never reach over the end of one. The counts are the tokenizer's own. Bounded: the pieces that were not asked for since as
 * many others were are dropped.
 */
export class PieceCounts {
  /** By their hashes; of several with the same hash, one. */
  #recent = new Map<number, CountedPiece>();
  #earlier = new Map<number, CountedPiece>();

  /**
   * @param split matches each piece of a text; global. Of o200k_base, as {@link endOfAsciiPiece} is
   * @param countTokens of one piece
   */
  constructor(
    private readonly split: RegExp,
    private readonly countTokens: (piece: string) => number,
  ) {}

  /** Tokens of a text. */
  of(text: string): number {
    let tokens = 0;
    let from = 0;
    while (from < text.length) {
      const end = endOfAsciiPiece(text, from);
      if (end < 0) return tokens + this.#ofRest(from === 0 ? text : text.slice(from));
      tokens += this.#ofPiece(text, from, end);
      from = end;
    }
    return tokens;
  }

  #ofRest(text: string): number {
    let tokens = 0;
    for (const piece of text.match(this.split) ?? []) tokens += this.#ofPiece(piece, 0, piece.length);
    return tokens;
  }

  #ofPiece(text: string, from: number, end: number): number {
    if (end - from > LONGEST_KEPT) return this.countTokens(text.slice(from, end));
    const hash = hashOf(text, from, end);
    const recent = this.#recent.get(hash);
    const known = recent ?? this.#earlier.get(hash);
    if (known !== undefined && known.piece.length === end - from && text.startsWith(known.piece, from)) {
      if (recent === undefined) this.#keep(hash, known);
      return known.tokens;
    }
    const piece = text.slice(from, end);
    const tokens = this.countTokens(piece);
    this.#keep(hash, { piece: ownCopyOf(piece), tokens });
    return tokens;
  }

  #keep(hash: number, counted: CountedPiece): void {
    if (this.#recent.size >= PIECES) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(hash, counted);
  }
}

/** Of so few characters it is computed faster than a string is made of them. */
function hashOf(text: string, from: number, end: number): number {
  let hash = 0;
  for (let at = from; at < end; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return hash;
}

/** V8 keeps a part of a text as a slice, with which the whole text would stay in memory. */
function ownCopyOf(piece: string): string {
  return Buffer.from(piece, "utf16le").toString("utf16le");
}
