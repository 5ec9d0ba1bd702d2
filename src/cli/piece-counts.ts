import { endOfAsciiPiece } from "./ascii-pieces.js";

/** Most characters of a piece whose count is kept; hardly a word has more. */
const LONGEST_KEPT = 15;
/** Of a slot: a head, and the piece's characters. So 32 bytes, half a line of the processor's cache. */
const SLOT_UNITS = 1 + LONGEST_KEPT;
/** Pieces that are kept, at most; a power of two. 2 MB, of which those in use are touched. */
const SLOTS = 65_536;
/** Bits of a hash above those of a slot's number. */
const SHIFT = 32 - Math.log2(SLOTS);
/** Spreads similar words: 2³² divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4). */
const SPREAD = 0x9e3779b1;

/**
 * Counts of a tokenizer's pieces, the words into which it splits a text before it merges bytes: the pieces of most texts were counted before,
 * and tokens never reach over the end of one. The counts are the tokenizer's own. Each piece has one slot, by its hash, and takes the place
 * of the piece before: nothing grows, and nothing is allocated to look a piece up.
 */
export class PieceCounts {
  /** A slot's head: the piece's length, and in the lower byte its tokens, at most three for a character. 0: the slot is free. */
  readonly #slots = new Uint16Array(SLOTS * SLOT_UNITS);

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
    const length = end - from;
    if (length > LONGEST_KEPT) return this.countTokens(text.slice(from, end));
    let hash = length;
    for (let at = from; at < end; at++) hash = Math.imul(hash, 31) + text.charCodeAt(at);
    const slot = (Math.imul(hash, SPREAD) >>> SHIFT) * SLOT_UNITS;
    if (this.#holds(slot, text, from, length)) return (this.#slots[slot] as number) & 0xff;
    const tokens = this.countTokens(text.slice(from, end));
    for (let at = 0; at < length; at++) this.#slots[slot + 1 + at] = text.charCodeAt(from + at);
    this.#slots[slot] = (length << 8) | tokens;
    return tokens;
  }

  #holds(slot: number, text: string, from: number, length: number): boolean {
    if ((this.#slots[slot] as number) >> 8 !== length) return false;
    for (let at = 0; at < length; at++) if (this.#slots[slot + 1 + at] !== text.charCodeAt(from + at)) return false;
    return true;
  }
}
