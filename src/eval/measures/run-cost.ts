import type { AnsweredQuestion } from "../base/run-record.js";
import { type Measured, meanOf } from "./measured.js";
import type { Price } from "./prices.js";

/** What a thousand questions come to at a price, in US dollars. */
export interface RunCost {
  readonly price: Price;
  /**
   * Prompts: cached tokens at the cached price, all others at the price of writing them to the cache where that costs more than input. So it
   * is the most that the same cached shares would cost there; what a provider would really hold follows its own rules. Null where cached
   * tokens were not measured.
   */
  readonly prompts: Measured | null;
  /** Answers; null where their tokens were not counted. */
  readonly answers: Measured | null;
}

const PER = 1_000 / 1_000_000;

/** What answered questions would cost per thousand. */
export function costAt(price: Price, questions: readonly AnsweredQuestion[]): RunCost {
  const uncachedPrice = price.cacheWrite ?? price.input;
  return {
    price,
    prompts: meanOf(questions, ({ promptTokens, cachedTokens }) =>
      promptTokens === null || cachedTokens === null
        ? null
        : PER * (cachedTokens * price.cachedInput + (promptTokens - cachedTokens) * uncachedPrice),
    ),
    answers: meanOf(questions, ({ answerTokens }) =>
      answerTokens === null ? null : PER * answerTokens * price.output,
    ),
  };
}
