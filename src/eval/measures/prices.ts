import { z } from "zod";
import {
  ANTHROPIC_LIMITS,
  GEMINI_MINIMUM,
  LONGEST_ANTHROPIC_MINIMUM,
  OPENAI_LIMITS,
} from "../../engines/adapters/provider-limits.js";
import { checked } from "../base/run-files.js";
import type { AnsweredQuestion } from "../base/run-record.js";
import { type Measured, meanOf, promptsOf } from "./measured.js";

const usd = z.number().min(0);

const price = z.strictObject({
  provider: z.string().min(1),
  model: z.string().min(1),
  /** The provider's own page that says so. */
  source: z.string().min(1),
  /** The day on which that was looked up, as `2026-11-21`. */
  date: z.iso.date(),
  /** US dollars per million tokens. */
  input: usd,
  cachedInput: usd,
  /** Null where writing to the cache costs what input costs. */
  cacheWrite: usd.nullable(),
  output: usd,
  /** Shortest prefix that the provider caches, in tokens. Null: what {@link minimumTokensOf} knows of the model. */
  minimumTokens: z.int().min(0).nullable().default(null),
  /** What else is to be known: when the price ends, which hours it is of. */
  note: z.string().nullable().default(null),
});

/** What a file of prices holds; `memprefix eval --prices FILE` takes one. */
const priceTable = z.array(price).min(1).max(12);

/** What one model costs at its provider. */
export type Price = z.output<typeof price>;

/** Checks prices. Throws {@link EvaluationError} naming the first field that is wrong. */
export function readPrices(json: unknown): readonly Price[] {
  return checked(priceTable, json, "prices");
}

/**
 * A few providers' list prices for prompts of up to 100,000 tokens, without discounts for batches. Prices change, some within weeks: give
 * your own where it matters.
 */
export const PRICES: readonly Price[] = [
  {
    provider: "OpenAI",
    model: "gpt-6.2-sol",
    source: "https://developers.openai.com/api/docs/models/gpt-6.2-sol",
    date: "2026-11-21",
    input: 2,
    cachedInput: 0.1,
    cacheWrite: 2.5,
    output: 10,
    minimumTokens: null,
    note: "kept for 30 minutes",
  },
  {
    provider: "Anthropic",
    model: "claude-sonnet-5-5",
    source: "https://platform.claude.com/docs/en/about-claude/pricing",
    date: "2026-10-24",
    input: 2,
    cachedInput: 0.1,
    cacheWrite: 2.5,
    output: 10,
    minimumTokens: null,
    note: "kept for 5 minutes",
  },
  {
    provider: "Google",
    model: "gemini-3.8-flash",
    source: "https://ai.google.dev/gemini-api/docs/pricing",
    date: "2026-10-07",
    input: 0.75,
    cachedInput: 0.075,
    cacheWrite: null,
    output: 3.75,
    minimumTokens: null,
    note: "until the end of 2026, then twice as much",
  },
  {
    provider: "DeepSeek",
    model: "deepseek-flash",
    source: "https://api-docs.deepseek.com/quick_start/pricing",
    date: "2026-10-27",
    input: 0.3,
    cachedInput: 0.006,
    cacheWrite: null,
    output: 1.2,
    minimumTokens: null,
    note: "in peak hours; else half",
  },
];

type MinimumTokens = (model: string) => number | null;

/** Shortest cached prefixes by provider, in tokens. A model whose minimum is not known has the largest of its provider's. */
const MINIMUM_TOKENS: ReadonlyMap<string, MinimumTokens> = new Map<string, MinimumTokens>([
  ["Anthropic", (model) => ANTHROPIC_LIMITS.minimumTokens(model) ?? LONGEST_ANTHROPIC_MINIMUM],
  ["Google", GEMINI_MINIMUM.minimumTokens],
  ["OpenAI", OPENAI_LIMITS.minimumTokens],
]);

/** Shortest prefix that is billed as cached, in tokens; null where none is known of the provider. */
export function minimumTokensOf({ provider, model, minimumTokens }: Price): number | null {
  return minimumTokens ?? MINIMUM_TOKENS.get(provider)?.(model) ?? null;
}

/** What a thousand questions come to at a price, in US dollars. */
export interface RunCost {
  readonly price: Price;
  /**
   * Prompts: cached tokens at the cached price, all others at the price of writing them to the cache where that costs more than input. A
   * cached prefix below the provider's minimum is billed as uncached; a prompt below it is not written either. An upper bound for the
   * cached shares that were measured; a provider's own cache may still hold less. Null where cached tokens were not measured.
   */
  readonly prompts: Measured | null;
  /** Answers; null where their tokens were not counted. */
  readonly answers: Measured | null;
}

const PER = 1_000 / 1_000_000;

/** What answered questions would cost per thousand. */
export function costAt(price: Price, questions: readonly AnsweredQuestion[]): RunCost {
  return {
    price,
    prompts: meanOf(questions, (question) => {
      const prompts = promptsOf(question);
      if (prompts === null) return null;
      return prompts.reduce((usd, one) => usd + PER * promptUsd(price, one.promptTokens, one.cachedTokens), 0);
    }),
    answers: meanOf(questions, ({ answerTokens }) =>
      answerTokens === null ? null : PER * answerTokens * price.output,
    ),
  };
}

/** One prompt, in millionths of a dollar. */
export function promptUsd(price: Price, promptTokens: number, cachedTokens: number): number {
  const minimum = minimumTokensOf(price) ?? 0;
  const cached = cachedTokens < minimum ? 0 : cachedTokens;
  const uncachedPrice = promptTokens < minimum ? price.input : (price.cacheWrite ?? price.input);
  return cached * price.cachedInput + (promptTokens - cached) * uncachedPrice;
}
