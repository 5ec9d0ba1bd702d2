/*
 * Scores of answers: F1 and BLEU-1 as Mem0's evaluation takes them, and a language model as judge.
 *
 * Enters: an answer, the gold answer, and the question's category; all untrusted text.
 * Leaves: scores from 0 to 1, or a judgement with its prompt and raw answer; null where there is nothing to compare with.
 */

import type { AnsweredQuestion } from "../base/run-record.js";
import type { Question } from "../locomo/locomo-data.js";

/** LoCoMo's questions on what was never said, excluded from published scores. The published file answers two of them. */
const ADVERSARIAL_CATEGORY = 5;

/** Whether a category's answers are scored at all. */
export function isScored(category: number): boolean {
  return category !== ADVERSARIAL_CATEGORY;
}

/** The gold answer to compare words with; null where there is none, or where nothing is scored. */
export function comparable({ answer, gold = "answer", category }: Question): string | null {
  return gold === "answer" && isScored(category) ? answer : null;
}

/**
 * An answer's scores against the gold answer, from 0 to 1, as Mem0's evaluation takes them: gold whole, in categories 1 to 4. Null in the
 * adversarial category and without a gold answer; an empty answer scores 0.
 */
export function scoreAnswer(
  answer: string,
  gold: string | null,
  category: number,
): Pick<AnsweredQuestion, "f1" | "bleu1"> {
  if (gold === null || !isScored(category)) return { f1: null, bleu1: null };
  return { f1: tokenF1(answer, gold), bleu1: bleu1(answer, gold) };
}

/*
 * LoCoMo has two token F1s, which are not comparable. This is the one of Mem0's evaluation and paper (`calculate_metrics` in
 * `evaluation/metrics/utils.py` of mem0ai/mem0, taken from A-MEM). LoCoMo's own (`f1_score` in `task_eval/evaluation.py` of
 * snap-research/locomo) counts repeated tokens, drops `a`, `an`, `the`, `and` and all punctuation, stems words (Porter), and splits
 * category 1 at commas and category 3 at the first semicolon.
 */

/** Lower case, `.` `,` `!` `?` as spaces, each word once. Other punctuation stays with its word. */
function distinctWords(text: string): ReadonlySet<string> {
  const words = text
    .toLowerCase()
    .replace(/[.,!?]/g, " ")
    .split(/\s+/);
  return new Set(words.filter((word) => word !== ""));
}

/** F1 of an answer's distinct words against the gold answer's, from 0 to 1: the harmonic mean of precision and recall. */
export function tokenF1(answer: string, gold: string): number {
  const answered = distinctWords(answer);
  const wanted = distinctWords(gold);
  const common = [...answered].filter((word) => wanted.has(word)).length;
  // With p = common / answered and r = common / wanted, 2pr / (p + r) is this.
  return common === 0 ? 0 : (2 * common) / (answered.size + wanted.size);
}

/**
 * BLEU-1 of an answer, from 0 to 1: the share of its words that gold has too, each counted at most as often as in gold, times the brevity
 * penalty e^(1 − gold words ÷ answer words) where the answer is not longer.
 *
 * Equals NLTK's `sentence_bleu` with weights (1, 0, 0, 0), as Mem0's evaluation calls it. Its smoothing (`method1`) affects only longer
 * n-grams, whose weight is 0: without a common word NLTK returns 0 before it smooths.
 */
export function bleu1(answer: string, gold: string): number {
  const answered = treebankWords(answer);
  const wanted = treebankWords(gold);
  const left = new Map<string, number>();
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of answered) {
    const count = left.get(word) ?? 0;
    if (count === 0) continue;
    left.set(word, count - 1);
    common++;
  }
  if (common === 0) return 0;
  const brevity = answered.length > wanted.length ? 1 : Math.exp(1 - wanted.length / answered.length);
  return (brevity * common) / answered.length;
}

/*
 * Words by the Penn Treebank's conventions, as NLTK's `word_tokenize` splits them and so as published BLEU scores count them. For lower-case
 * text. NLTK finds sentence ends with Punkt, a trained model of some 150 abbreviations; here every period before a space ends a sentence,
 * except after initials (`u.s.`, `p.m.`, `j.`) and {@link TITLES}.
 */

const TITLES = new Set(["dr", "mr", "mrs", "ms", "st", "jr", "sr", "vs"]);

/** A period at a word's end, before any closing quotes and brackets. */
const FINAL_PERIOD = /([^\s.]+)\.(?=["'”’»)\]}>]*(\s|$))/g;
const INITIALS = /^\p{L}(?:\.\p{L})*$/u;

/** Characters that are always words of their own; commas and colons not within figures: `1,000`, `7:30`. */
const ALONE = /\.{2,}|--|''|[“”„«»"`‘’]|[;@#$%&?!*()[\]{}<>‒-―]|[,:](?!\d)/g;

/** A quote or apostrophe before a word that is not a clitic. */
const OPENING_QUOTE = /(?<![\p{L}\p{N}_])'(?=[\p{L}\p{N}_])(?!(?:re|ve|ll|m|t|s|d|n)(?![\p{L}\p{N}_]))/gu;

const CLITIC = /^(.*[^'])('s|'m|'d|'ll|'re|'ve|n't|')$/;

/** Words that the Treebank splits in two. */
const TWO_WORDS: Readonly<Record<string, readonly [string, string]>> = {
  cannot: ["can", "not"],
  "d'ye": ["d", "'ye"],
  gimme: ["gim", "me"],
  gonna: ["gon", "na"],
  gotta: ["got", "ta"],
  lemme: ["lem", "me"],
  "more'n": ["more", "'n"],
  wanna: ["wan", "na"],
};

/** A text's words in order, in lower case; punctuation marks are words of their own. */
export function treebankWords(text: string): string[] {
  return text
    .toLowerCase()
    .replace(/(^|[\s([{<])"/g, "$1 `` ")
    .replace(OPENING_QUOTE, "' ")
    .replace(FINAL_PERIOD, (found, word: string, after: string) =>
      after !== "" && (INITIALS.test(word) || TITLES.has(word)) ? found : `${word} . `,
    )
    .replace(ALONE, (mark) => (mark === '"' ? " '' " : ` ${mark} `))
    .replace(/` +`/g, "``")
    .split(/\s+/)
    .filter((word) => word !== "")
    .flatMap(splitWord);
}

function splitWord(word: string): readonly string[] {
  const two = TWO_WORDS[word];
  if (two !== undefined) return two;
  const [, stem, clitic] = CLITIC.exec(word) ?? [];
  return stem === undefined || clitic === undefined ? [word] : [...splitWord(stem), clitic];
}
