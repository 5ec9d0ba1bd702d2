import { countTokens, encode } from "gpt-tokenizer/encoding/o200k_base";
import type { TokenCounter } from "../core/index.js";

/** Text that looks like a special token is text: memories may hold any. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

/**
 * Byte-pair merging takes time in the square of a word's length, so words are cut here first. A text with longer ones is counted a
 * little too high, which an estimate may be.
 */
const LONGEST_WORD = 256;
const LONG_WORD = new RegExp(`\\S{${LONGEST_WORD + 1}}`);
const PIECES = new RegExp(`\\S{1,${LONGEST_WORD}}\\s*|\\s+`, "g");

/** Tokens of a text in OpenAI's o200k_base encoding; other engines' counts differ by some per cent, and ratios hardly. */
export const countO200k: TokenCounter = (text) => {
  if (!hasLongWord(text)) return countTokens(text, AS_TEXT);
  let tokens = 0;
  for (const [piece] of text.matchAll(PIECES)) tokens += countTokens(piece, AS_TEXT);
  return tokens;
};

function hasLongWord(text: string): boolean {
  return text.length > LONGEST_WORD && LONG_WORD.test(text);
}

/** The tokens themselves. */
export function encodeO200k(text: string): number[] {
  if (!hasLongWord(text)) return encode(text, AS_TEXT);
  return [...text.matchAll(PIECES)].flatMap(([piece]) => encode(piece, AS_TEXT));
}
