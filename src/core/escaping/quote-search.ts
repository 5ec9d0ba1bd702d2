import { keptIn } from "../text/collections.js";
import { CUT_MARK } from "../text/memory-text.js";
import { escapeText } from "./escaping.js";

/**
 * A run of backslashes and the character that it escapes, at any depth: JSON in JSON in source code. Matches whole runs, so that it is
 * linear.
 */
const ESCAPE = /\\+(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|[nrtbfv0]|)/g;
/** HTML and XML character references; the named ones here are not letters. */
const ENTITY = /&(?:amp;)*(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|quot|apos|lt|gt|nbsp|amp);/g;
/** Percent-encoded bytes of URLs and forms, encoded any number of times. */
const PERCENT = /(?:%(?:25)*[0-9A-Fa-f]{2})+/g;
/** Further marks on one character are meaningless, and normalising them takes quadratic time. */
const MANY_MARKS = /(\p{M}{4})\p{M}+/gu;
/** Letters, digits, and symbols such as emoji: the characters that are compared. U+FFFD replaced invalid Unicode. */
const NOT_IN_WORDS = /(?:[^\p{L}\p{M}\p{N}\p{So}]|\ufffd)+/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const ASCII = /^[\x00-\x7f]*$/;
/** Scripts without spaces between words, and symbols: no word boundaries there. */
const WITHOUT_SPACES =
  /[\p{So}\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]/u;

/** Maximum depth of nested encodings that is undone. */
const MAX_NESTED_ENCODINGS = 4;
/** A text with fewer letters and digits only matches whole words: the code 4711 is not quoted by the order 1471123. */
const SHORTEST_INSIDE_WORDS = 8;
/** Letters and digits of a piece. Of a text longer than two pieces, any quoted part of two pieces' length contains a whole one. */
const PIECE = 100;

const UTF8 = new TextEncoder();
const FROM_UTF8 = new TextDecoder();

/**
 * A normal form in which all encodings of a text are equal: escapes of JSON, HTML and URLs undone at any depth, everything but letters and
 * digits as one kind of space, lower case. Linear time.
 */
export function comparableText(text: string): string {
  let plain = text;
  for (let kind = 0; kind < MAX_NESTED_ENCODINGS; kind++) {
    const before = plain;
    plain = withoutEscapes(plain);
    if (plain === before) break;
  }
  if (ASCII.test(plain)) return asciiWords(plain);
  return plain
    .replace(MANY_MARKS, "$1")
    .normalize("NFKC")
    .toLowerCase()
    .normalize("NFC")
    .replace(NOT_IN_WORDS, " ")
    .trim();
}

/** Fast path for ASCII: the same result as the regular expressions below, in a tenth of the time. */
function asciiWords(text: string): string {
  const words = UTF8.encode(text);
  let length = 0;
  let isBetween = true;
  for (let at = 0; at < words.length; at++) {
    const character = words[at] as number;
    const folded = character | 0x20;
    if ((character >= 0x30 && character <= 0x39) || (folded >= 0x61 && folded <= 0x7a)) {
      if (isBetween && length > 0) words[length++] = 0x20;
      isBetween = false;
      words[length++] = character <= 0x39 ? character : folded;
    } else isBetween = true;
  }
  return FROM_UTF8.decode(words.subarray(0, length));
}

function withoutEscapes(text: string): string {
  let plain = text;
  if (plain.includes("\\")) {
    plain = plain.replace(ESCAPE, (run, a?: string, b?: string, c?: string, d?: string) => {
      const digits = a ?? b ?? c ?? d;
      if (digits !== undefined) return characterOf(Number.parseInt(digits, 16));
      return run.endsWith("\\") ? "" : " ";
    });
  }
  if (plain.includes("&")) {
    plain = plain.replace(ENTITY, (_entity, decimal?: string, hex?: string) => {
      if (decimal !== undefined) return characterOf(Number.parseInt(decimal, 10));
      return hex === undefined ? " " : characterOf(Number.parseInt(hex, 16));
    });
  }
  if (plain.includes("%")) {
    plain = plain.replace(PERCENT, (run) => {
      const bytes = [...run.matchAll(/([0-9A-Fa-f]{2})(?=%|$)/g)].map(([, hex]) => Number.parseInt(hex ?? "", 16));
      return FROM_UTF8.decode(Uint8Array.from(bytes));
    });
  }
  return plain;
}

/** Halves of a surrogate pair are adjacent, so `fromCharCode` combines them. */
function characterOf(code: number): string {
  if (code <= 0xffff) return String.fromCharCode(code);
  return code <= 0x10ffff ? String.fromCodePoint(code) : "";
}

/** Characters before a text that could have combined with its first letter into an escape. */
const BEFORE = ["", "\\", "%"] as const;

/**
 * Finds quotes of texts in messages, in any encoding: a whole text, or any part of a long one with at least twice {@link PIECE} letters and
 * digits. The end of a truncated text is unknown: any message long enough to contain such a part of it counts as a quote.
 */
export class QuoteSearch {
  /** Without spaces, and shorter than two pieces: searching longer ones this way would take quadratic time. */
  readonly #inside = new Set<string>();
  /** With a space on either side. */
  readonly #words = new Set<string>();
  readonly #pieces = new PieceSearch();
  #isCut = false;

  constructor(texts: Iterable<string> = []) {
    for (const text of texts) this.add(text);
  }

  /** Adds a text to search for; up to a tenth of a second for 100,000 characters. */
  add(text: string): void {
    const isCut = text.endsWith(CUT_MARK);
    this.#isCut ||= isCut;
    const whole = isCut ? text.slice(0, -CUT_MARK.length) : text;
    for (const form of new Set([whole, escapeText(whole)])) {
      for (const before of BEFORE) this.#addWords(comparableText(before + form));
    }
  }

  /** Whether there is nothing to search for. */
  get isEmpty(): boolean {
    return this.#inside.size === 0 && this.#words.size === 0 && this.#pieces.isEmpty;
  }

  /** @param said a message, its JSON, or any other text */
  isIn(said: string): boolean {
    const words = ` ${comparableText(said)} `;
    for (const quote of this.#words) if (words.includes(quote)) return true;
    const letters = words.replaceAll(" ", "");
    if (this.#isCut && letters.length >= 2 * PIECE) return true;
    for (const quote of this.#inside) if (letters.includes(quote)) return true;
    return this.#pieces.isIn(letters);
  }

  #addWords(words: string): void {
    const letters = words.replaceAll(" ", "");
    if (letters === "") return;
    if (letters.length >= 2 * PIECE) this.#pieces.add(letters);
    else if (letters.length < SHORTEST_INSIDE_WORDS && !WITHOUT_SPACES.test(letters)) this.#words.add(` ${words} `);
    else this.#inside.add(letters);
  }
}

const BASE = 0x10001;
/** Prime; its product with the base is below 2^53. */
const MODULUS = 0x7fff_ffff;

const FILTER = 65_536;

/** Finds any number of pieces of {@link PIECE} characters in one pass, by a rolling hash (Rabin and Karp). */
class PieceSearch {
  readonly #pieces = new Map<number, Set<string>>();
  /** Bitmap of the hashes' remainders: rules out most offsets cheaply. */
  readonly #filter = new Uint8Array(FILTER);

  get isEmpty(): boolean {
    return this.#pieces.size === 0;
  }

  /** Adds a text, cut into consecutive pieces. */
  add(text: string): void {
    for (let at = 0; at + PIECE <= text.length; at += PIECE) {
      const piece = text.slice(at, at + PIECE);
      let hash = 0;
      for (let i = 0; i < PIECE; i++) hash = (hash * BASE + piece.charCodeAt(i)) % MODULUS;
      this.#filter[hash % FILTER] = 1;
      keptIn(this.#pieces, hash, () => new Set()).add(piece);
    }
  }

  isIn(text: string): boolean {
    if (this.isEmpty) return false;
    let leading = 1;
    for (let i = 0; i < PIECE; i++) leading = (leading * BASE) % MODULUS;
    let hash = 0;
    for (let end = 1; end <= text.length; end++) {
      hash = (hash * BASE + text.charCodeAt(end - 1)) % MODULUS;
      if (end < PIECE) continue;
      if (end > PIECE) {
        const left = (text.charCodeAt(end - 1 - PIECE) * leading) % MODULUS;
        hash = (hash - left + MODULUS) % MODULUS;
      }
      if (this.#filter[hash % FILTER] === 1 && this.#pieces.get(hash)?.has(text.slice(end - PIECE, end))) return true;
    }
    return false;
  }
}
