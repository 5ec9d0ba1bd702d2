import { CUT_MARK } from "../text/storable-text.js";
import { BY_LIST, BY_SHAPES, escapeText } from "./escaping.js";

/** A run of backslashes and what it escapes, at any depth: JSON in JSON in a program's source. Takes whole runs, so that it is linear. */
const ESCAPE = /\\+(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|[nrtbfv0]|)/g;
/** Characters of HTML and XML; those with names that are met stand for no letter. */
const ENTITY = /&(?:amp;)*(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|quot|apos|lt|gt|nbsp|amp);/g;
/** Bytes as addresses and forms have them, escaped again and again or not. */
const PERCENT = /(?:%(?:25)*[0-9A-Fa-f]{2})+/g;
/** Marks past these on one character mean nothing, and normalising them takes time in proportion to their square. */
const MANY_MARKS = /(\p{M}{4})\p{M}+/gu;
/** Letters, digits, and symbols like emoji: what a text is compared by. U+FFFD stands for what was no Unicode. */
const BESIDE_THE_WORDS = /(?:[^\p{L}\p{M}\p{N}\p{So}]|\ufffd)+/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const ASCII = /^[\x00-\x7f]*$/;
/** Scripts that put no space between words, and symbols: there a word's end is not seen. */
const WITHOUT_SPACES =
  /[\p{So}\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]/u;

/** Escapes within escapes of another kind that are undone. */
const MOST_KINDS_NESTED = 4;
/** A text of fewer letters and digits is a quote only as words of its own: the code 4711 is not quoted by the order 1471123. */
const SHORTEST_INSIDE_WORDS = 8;
/** Letters and digits of a piece. Of a text that is longer than two, whatever part of that length is quoted holds one. */
const PIECE = 100;

/**
 * A text's words in a form in which all its encodings are equal: escapes of JSON, HTML and addresses undone at any depth, one kind of
 * space for all that is neither letter nor digit, without case. Takes time in proportion to the text.
 */
export function comparableText(text: string): string {
  let plain = text;
  for (let kind = 0; kind < MOST_KINDS_NESTED; kind++) {
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
    .replace(BESIDE_THE_WORDS, " ")
    .trim();
}

/** What the expressions below do for every text, in a tenth of the time. */
function asciiWords(text: string): string {
  const words = Buffer.from(text, "latin1");
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
  return words.toString("latin1", 0, length);
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
      return new TextDecoder().decode(Uint8Array.from(bytes));
    });
  }
  return plain;
}

/** Halves of a pair come one after the other: `fromCharCode` puts them together. */
function characterOf(code: number): string {
  if (code <= 0xffff) return String.fromCharCode(code);
  return code <= 0x10ffff ? String.fromCodePoint(code) : "";
}

/** How a text may have been read before it was escaped: with what stands in front of it, where that takes its first letter along. */
const BEFORE = ["", "\\", "%"] as const;

/**
 * Finds quotes of texts in what somebody said, however they are encoded: a whole text, or of a long one any part of twice {@link PIECE}
 * letters and digits. Of a text that was cut, the part that is gone is not known: every saying that is long enough to hold such a part of it
 * counts as a quote.
 */
export class QuoteSearch {
  /** Without spaces; of a length below that of two pieces. Longer ones would be looked for in the square of it. */
  readonly #inside = new Set<string>();
  /** With a space on either side. */
  readonly #words = new Set<string>();
  readonly #pieces = new PieceSearch();
  #isCut = false;

  constructor(texts: Iterable<string> = []) {
    for (const text of texts) this.add(text);
  }

  /** Adds a text to those that are looked for: for one of 100,000 characters, up to a tenth of a second. */
  add(text: string): void {
    const isCut = text.endsWith(CUT_MARK);
    this.#isCut ||= isCut;
    const whole = isCut ? text.slice(0, -CUT_MARK.length) : text;
    for (const form of new Set([whole, escapeText(whole, BY_SHAPES), escapeText(whole, BY_LIST)])) {
      for (const before of BEFORE) this.#addWords(comparableText(before + form));
    }
  }

  /** Whether there is nothing to find. */
  get isEmpty(): boolean {
    return this.#inside.size === 0 && this.#words.size === 0 && this.#pieces.isEmpty;
  }

  /** @param said a message, its JSON, or anything with text in it */
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
/** Prime; times the base still a whole number of 53 bits. */
const MODULUS = 0x7fff_ffff;

const FILTER = 65_536;

/** Finds pieces of {@link PIECE} characters in one pass, whatever their number: by a hash that rolls over the text (Rabin and Karp). */
class PieceSearch {
  readonly #pieces = new Map<number, Set<string>>();
  /** Which remainders the hashes leave: most places are passed over by looking here. */
  readonly #filter = new Uint8Array(FILTER);

  get isEmpty(): boolean {
    return this.#pieces.size === 0;
  }

  /** Adds a text cut into pieces, one behind the other. */
  add(text: string): void {
    for (let at = 0; at + PIECE <= text.length; at += PIECE) {
      const piece = text.slice(at, at + PIECE);
      let hash = 0;
      for (let i = 0; i < PIECE; i++) hash = (hash * BASE + piece.charCodeAt(i)) % MODULUS;
      this.#filter[hash % FILTER] = 1;
      const known = this.#pieces.get(hash);
      if (known === undefined) this.#pieces.set(hash, new Set([piece]));
      else known.add(piece);
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
