/*
 * There are two token F1s for LoCoMo. This is the one that Mem0's evaluation uses (`calculate_metrics` in `evaluation/metrics/utils.py`
 * of mem0ai/mem0, taken there from A-MEM), so that figures stand beside those of Mem0's paper and of what is compared with it. LoCoMo's own
 * (`f1_score` in `task_eval/evaluation.py` of snap-research/locomo) differs: it counts repeated tokens, drops `a`, `an`, `the`, `and` and all
 * punctuation, takes words to their Porter stems, scores category 1 comma by comma, and category 3 up to the first semicolon. The two are
 * not comparable.
 */

/** Lower case, `.` `,` `!` `?` as spaces, each word once. Other punctuation stays with its word. */
function distinctWords(text: string): ReadonlySet<string> {
  const words = text
    .toLowerCase()
    .replace(/[.,!?]/g, " ")
    .split(/\s+/);
  return new Set(words.filter((word) => word !== ""));
}

/**
 * F1 of an answer's distinct words against the gold answer's, from 0 to 1: the harmonic mean of the share of the answer's words that are
 * gold's, and of gold's that are the answer's. 0 where either has no word.
 */
export function tokenF1(answer: string, gold: string): number {
  const answered = distinctWords(answer);
  const wanted = distinctWords(gold);
  const common = [...answered].filter((word) => wanted.has(word)).length;
  // With p = common / answered and r = common / wanted, 2pr / (p + r) is this.
  return common === 0 ? 0 : (2 * common) / (answered.size + wanted.size);
}
