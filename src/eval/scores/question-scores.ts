import { bleu1 } from "./bleu-1.js";
import { tokenF1 } from "./token-f1.js";

/** LoCoMo's questions on what was never said, left out of published scores: there is nothing to compare an answer with. */
export const ADVERSARIAL_CATEGORY = 5;

/** Null: not scored. */
export interface AnswerScores {
  readonly f1: number | null;
  readonly bleu1: number | null;
}

/**
 * An answer's scores against the gold answer, each from 0 to 1, as Mem0's evaluation takes them: gold whole, in categories 1 to 4. Null in
 * the adversarial category and where there is no gold answer; an empty answer to a question that has one scores 0.
 */
export function scoreAnswer(answer: string, gold: string | null, category: number): AnswerScores {
  if (gold === null || category === ADVERSARIAL_CATEGORY) return { f1: null, bleu1: null };
  return { f1: tokenF1(answer, gold), bleu1: bleu1(answer, gold) };
}
