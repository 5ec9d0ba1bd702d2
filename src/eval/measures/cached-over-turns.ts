import { groupBy } from "../../core/text/lists.js";
import type { QuestionRecord } from "../base/run-record.js";
import { isAnswered } from "./measured.js";

/** The cached share of prompts around one place in their conversations. */
export interface TurnShare {
  /** The how-manieth question of a conversation, from 1. */
  readonly turn: number;
  readonly share: number;
}

/** Most points of a line: more are not seen. */
const MOST_POINTS = 120;

/**
 * How the cached share of an arm's prompts develops over a conversation's questions: at each turn, cached ÷ prompt tokens of all
 * conversations' prompts up to `window` ÷ 2 turns away. Warm-ups, failures and unmeasured prompts take a turn and count in none.
 */
export function cachedOverTurns(records: readonly QuestionRecord[], window: number): TurnShare[] {
  const sums: { cached: number; prompt: number }[] = [];
  for (const asked of groupBy(records, ({ conversation }) => conversation).values()) {
    const inOrder = asked.toSorted((a, b) => a.question - b.question);
    for (const [turn, record] of inOrder.entries()) {
      const sum = sums[turn] ?? { cached: 0, prompt: 0 };
      sums[turn] = sum;
      if (!isAnswered(record) || record.isWarmUp) continue;
      if (record.promptTokens === null || record.cachedTokens === null) continue;
      sum.cached += record.cachedTokens;
      sum.prompt += record.promptTokens;
    }
  }
  const step = Math.max(1, Math.ceil(sums.length / MOST_POINTS));
  const reach = Math.floor(window / 2);
  return sums.flatMap((_, turn) => {
    if (turn % step !== 0 && turn !== sums.length - 1) return [];
    const near = sums.slice(Math.max(0, turn - reach), turn + reach + 1);
    const prompt = near.reduce((total, sum) => total + sum.prompt, 0);
    const cached = near.reduce((total, sum) => total + sum.cached, 0);
    return prompt === 0 ? [] : [{ turn: turn + 1, share: cached / prompt }];
  });
}
