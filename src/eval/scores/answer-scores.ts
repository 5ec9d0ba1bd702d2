/*
 * Scores of answers: F1 as Mem0's evaluation takes it, and a language model as judge.
 *
 * Enters: an answer, the gold answer, and the question's category; all untrusted text.
 * Leaves: scores from 0 to 1, or a judgement with its prompt and raw answer; null where there is nothing to compare with.
 */

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
