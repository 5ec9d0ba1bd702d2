import { createRequire } from "node:module";
import { O200K_TOKEN_SPLIT_REGEX } from "gpt-tokenizer/encodingParams/constants";
import type { TokenCounter } from "../core/index.js";

/** Text that looks like a special token is text: memories may hold any. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

/**
 * Words whose merges the tokenizer caches. It moves a word to the end of its list with every hit, in time proportional to the list: one text
 * of 65,532 characters took 15 ms with a thousand words in it, and a second with its own 100,000.
 */
const KEPT_MERGES = 1_000;

type Tokenizer = typeof import("gpt-tokenizer/encoding/o200k_base");
let loaded: Tokenizer | undefined;

/** Loads the encoding, some .4 s. Call it before serving; otherwise the first count loads it. */
export function loadO200k(): Tokenizer {
  if (loaded === undefined) {
    loaded = createRequire(import.meta.url)("gpt-tokenizer/encoding/o200k_base") as Tokenizer;
    loaded.setMergeCacheSize(KEPT_MERGES);
  }
  return loaded;
}

/**
 * Byte-pair merging is quadratic in a word's length, and white space of any length is one word: longer runs are cut, and their text is counted
 * slightly too high.
 */
const LONGEST_RUN = 128;
const LONG_RUNS = new RegExp(`\\S{${LONGEST_RUN + 1},}|\\s{${LONGEST_RUN + 1},}`, "g");
const CUTS = new RegExp(`[^]{1,${LONGEST_RUN}}`, "gu");

/** Longest text whose words the tokenizer may cache, in characters: words are slices, which keep their whole text in memory. */
const LONGEST_KEPT = 1_024;
/** Longest piece whose count is cached, in characters: V8 copies so short a slice, so that its text is freed. */
const LONGEST_PIECE = 12;
/** Most pieces whose counts are cached, some 4 MB; then all are dropped. */
const MOST_PIECES = 65_536;

const counts = new Map<string, number>();

/**
 * Tokens of a text, summed over its pieces: the words into which the tokenizer splits it before it merges bytes. Most were counted before, and
 * no token crosses their ends. Takes half the tokenizer's own time for a new text. Caching whole texts instead made a compose of 100 new
 * memories take 1.8 times the CPU.
 */
function countPieces(text: string): number {
  let tokens = 0;
  for (const piece of text.match(O200K_TOKEN_SPLIT_REGEX) ?? []) tokens += counts.get(piece) ?? countPiece(piece);
  return tokens;
}

function countPiece(piece: string): number {
  const tokens = loadO200k().countTokens(piece, AS_TEXT);
  if (counts.size === MOST_PIECES) counts.clear();
  if (piece.length <= LONGEST_PIECE) counts.set(piece, tokens);
  return tokens;
}

/** Longest text counted whole, in characters: 50 ms of Chinese without repeats, while nothing else is served. */
const COUNTED_WHOLE = 16_384;
/** A longer text is estimated from this many samples of this many characters, at equal distances. */
const SAMPLES = 16;
const SAMPLE_CHARACTERS = 1_024;

/**
 * Tokens in OpenAI's o200k_base encoding, estimated above {@link COUNTED_WHOLE} characters. Other engines' counts differ by some per cent, and
 * ratios hardly.
 */
export const countO200k: TokenCounter = (text) => {
  if (text.length <= COUNTED_WHOLE) return countWhole(text);
  const apart = Math.floor((text.length - SAMPLE_CHARACTERS) / (SAMPLES - 1));
  let tokens = 0;
  for (let sample = 0; sample < SAMPLES; sample++) {
    tokens += countWhole(text.slice(sample * apart, sample * apart + SAMPLE_CHARACTERS).toWellFormed());
  }
  return Math.round((tokens * text.length) / (SAMPLES * SAMPLE_CHARACTERS));
};

function countWhole(text: string): number {
  // Most lines and messages: there is no run to look for.
  if (text.length <= LONGEST_RUN) return countPieces(text);
  let tokens = 0;
  if (text.length <= LONGEST_KEPT) {
    for (const piece of piecesOf(text)) tokens += countPieces(piece);
    return tokens;
  }
  const { countTokens, clearMergeCache } = loadO200k();
  for (const piece of piecesOf(text)) tokens += countTokens(piece, AS_TEXT);
  clearMergeCache();
  return tokens;
}

export function encodeO200k(text: string): number[] {
  const { encode } = loadO200k();
  return [...piecesOf(text)].flatMap((piece) => encode(piece, AS_TEXT));
}

/** The text, with its long runs cut. */
function* piecesOf(text: string): Generator<string, void, undefined> {
  let from = 0;
  for (const { 0: run, index } of text.matchAll(LONG_RUNS)) {
    if (index > from) yield text.slice(from, index);
    for (const [piece] of run.matchAll(CUTS)) yield piece;
    from = index + run.length;
  }
  yield from === 0 ? text : text.slice(from);
}
