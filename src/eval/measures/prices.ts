import { z } from "zod";

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
  /** What else is to be known: when the price ends, which hours it is of. */
  note: z.string().nullable().default(null),
});

/** What a file of prices holds; `memstem eval --prices FILE` takes one. */
export const priceTable = z.array(price).min(1).max(12);

/** What one model costs at its provider. */
export type Price = z.output<typeof price>;

/** A file holds no prices. */
export class PricesError extends Error {
  override readonly name = "PricesError";
  constructor(
    /** Path of the first field that is wrong, as `0.input`. */
    readonly field: string,
    message: string,
  ) {
    super(`prices: ${field === "" ? "the file" : field}: ${message}`);
  }
}

/** Checks prices. Throws {@link PricesError} naming the first field that is wrong. */
export function readPrices(json: unknown): readonly Price[] {
  const parsed = priceTable.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new PricesError(issue?.path.join(".") ?? "", issue?.message ?? "is not valid");
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
    note: "in peak hours; else half",
  },
];
