import { treebankWords } from "./treebank-words.js";

/**
 * BLEU-1 of an answer against a gold answer, from 0 to 1: the share of the answer's words that gold has too, each counted at most as often as
 * it stands there, times the brevity penalty e^(1 − gold words ÷ answer words) where the answer is not longer. 0 where no word is common.
 *
 * This is NLTK's `sentence_bleu` with weights (1, 0, 0, 0), as Mem0's evaluation calls it. Its smoothing (`method1`) puts 0.1 in place of a
 * count of 0: of bigrams and longer, whose weight is 0, for without a common word NLTK answers 0 before it smooths. So it changes nothing.
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
