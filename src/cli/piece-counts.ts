import { endOfAsciiPiece, type TextUnits } from "./ascii-pieces.js";

/** Most characters of a piece whose count is kept; hardly a word has more. */
const LONGEST_KEPT = 15;
/** Of a slot: a head, and the piece's characters. So 32 bytes, half a line of the processor's cache. */
const SLOT_UNITS = 1 + LONGEST_KEPT;
/** Pieces that are kept, at most; a power of two. 2 MB, of which those in use are touched. */
const SLOTS = 65_536;
/** Longest text that is counted, in characters. */
export const MOST_UNITS = 1_024;
/** Characters up to which they are read one by one faster than by a call of Node's. */
const FEW = 24;
/** Whether units in memory are as UTF-16LE writes them. */
const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
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

  /** The text that is being counted, and the same memory as bytes. */
  readonly #text: { -readonly [Field in keyof TextUnits]: TextUnits[Field] };
  readonly #bytes: Buffer;

  /**
   * @param split matches each piece of a text; global. Of o200k_base, as {@link endOfAsciiPiece} is
   * @param countTokens of one piece
   */
  constructor(
    private readonly split: RegExp,
    private readonly countTokens: (piece: string) => number,
  ) {
    const units = new Uint16Array(MOST_UNITS);
    this.#text = { units, length: 0 };
    this.#bytes = Buffer.from(units.buffer);
  }

  /** Tokens of a text, of {@link MOST_UNITS} characters at most. */
  of(text: string): number {
    const { units } = this.#text;
    // A string says what kind of string it is with every character that is read.
    if (IS_LITTLE_ENDIAN && text.length > FEW) this.#bytes.write(text, "utf16le");
    else for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at);
    this.#text.length = text.length;
    let tokens = 0;
    let from = 0;
    while (from < text.length) {
      const end = endOfAsciiPiece(this.#text, from);
      if (end < 0) return tokens + this.#ofRest(text, from);
      tokens += this.#ofPiece(text, from, end);
      from = end;
    }
    return tokens;
  }

  #ofRest(text: string, start: number): number {
    let tokens = 0;
    let from = start;
    for (const piece of (start === 0 ? text : text.slice(start)).match(this.split) ?? []) {
      tokens += this.#ofPiece(text, from, from + piece.length);
      from += piece.length;
    }
    return tokens;
  }

  #ofPiece(text: string, from: number, end: number): number {
    const length = end - from;
    if (length > LONGEST_KEPT) return this.countTokens(text.slice(from, end));
    const { units } = this.#text;
    let hash = length;
    for (let at = from; at < end; at++) hash = Math.imul(hash, 31) + (units[at] as number);
    const slot = (Math.imul(hash, SPREAD) >>> SHIFT) * SLOT_UNITS;
    if (this.#holds(slot, from, length)) return (this.#slots[slot] as number) & 0xff;
    const tokens = this.countTokens(text.slice(from, end));
    for (let at = 0; at < length; at++) this.#slots[slot + 1 + at] = units[from + at] as number;
    this.#slots[slot] = (length << 8) | tokens;
    return tokens;
  }

  #holds(slot: number, from: number, length: number): boolean {
    const { units } = this.#text;
    if ((this.#slots[slot] as number) >> 8 !== length) return false;
    for (let at = 0; at < length; at++) if (this.#slots[slot + 1 + at] !== units[from + at]) return false;
    return true;
  }
}
