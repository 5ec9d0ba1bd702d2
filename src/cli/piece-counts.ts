/**
 * Most characters of a piece whose count is kept: V8 keeps a longer piece of a text as a slice, with which the whole text would stay in
 * memory.
 */
const LONGEST_KEPT = 12;
/** Pieces of one generation: two are kept, some 1 MB. */
const PIECES = 8_192;

/**
 * Counts of a tokenizer's pieces, the words into which it splits a text before it merges bytes: the pieces of most texts were counted before,
 * and tokens never reach over the end of one. The counts are the tokenizer's own. Bounded: the pieces that were not asked for since as
 * many others were are dropped.
 */
export class PieceCounts {
  #recent = new Map<string, number>();
  #earlier = new Map<string, number>();

  /**
   * @param split matches each piece of a text; global
   * @param countTokens of one piece
   */
  constructor(
    private readonly split: RegExp,
    private readonly countTokens: (piece: string) => number,
  ) {}

  /** Tokens of a text. */
  of(text: string): number {
    let tokens = 0;
    for (const piece of text.match(this.split) ?? []) tokens += this.#ofPiece(piece);
    return tokens;
  }

  #ofPiece(piece: string): number {
    if (piece.length > LONGEST_KEPT) return this.countTokens(piece);
    const known = this.#recent.get(piece);
    if (known !== undefined) return known;
    const count = this.#earlier.get(piece) ?? this.countTokens(piece);
    if (this.#recent.size >= PIECES) {
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(piece, count);
    return count;
  }
}
