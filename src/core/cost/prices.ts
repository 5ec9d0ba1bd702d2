import { DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type EngineModel, type Prices } from "./engine-model.js";

/** The month in which {@link PRICES} were read. */
export const PRICES_READ = "2026-11";

/** What a provider bills and caches, relative to an uncached input token. Null: unknown. */
export interface ProviderPrice {
  readonly provider: string;
  /** Host names of its API. */
  readonly host: RegExp;
  /** Engine families that identify it where the host is a gateway. */
  readonly families: readonly string[];
  readonly models: string;
  /** By name; null: all. */
  readonly model: RegExp | null;
  readonly family?: string;
  readonly cached: number | null;
  /** For the shortest lifetime. */
  readonly written: number | null;
  readonly writtenForHour: number | null;
  readonly minimumTokens: number | null;
  readonly blockTokens: number | null;
  /** After its last use, at least. */
  readonly lifetimeSeconds: number | null;
}

const UNKNOWN = {
  cached: null,
  written: null,
  writtenForHour: null,
  minimumTokens: null,
  blockTokens: null,
  lifetimeSeconds: null,
} as const;

/** https://platform.openai.com/docs/guides/prompt-caching */
const OPENAI = {
  ...UNKNOWN,
  provider: "OpenAI",
  host: /(?:^|\.)api\.openai\.com$/,
  families: ["openai", "openai-breakpoints"],
  cached: 1 / 20,
  minimumTokens: 1_024,
} as const;

/** https://platform.claude.com/docs/en/build-with-claude/prompt-caching */
const ANTHROPIC = {
  provider: "Anthropic",
  host: /(?:^|\.)api\.anthropic\.com$/,
  families: ["anthropic"],
  cached: 1 / 20,
  written: 1.25,
  writtenForHour: 2,
  blockTokens: 1,
  lifetimeSeconds: 300,
} as const;

/** https://ai.google.dev/gemini-api/docs/caching */
const GEMINI = {
  ...UNKNOWN,
  provider: "Gemini",
  host: /^generativelanguage\.googleapis\.com$/,
  families: [],
  cached: 1 / 10,
} as const;

/** The first row that matches counts. docs/retention.md has it as a table. */
export const PRICES: readonly ProviderPrice[] = [
  {
    ...OPENAI,
    models: "GPT-5.6 and later",
    model: /gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]\b|1\d\b)/,
    family: "openai-breakpoints",
    written: 1.25,
    blockTokens: 1,
    lifetimeSeconds: 1_800,
  },
  { ...OPENAI, models: "others", model: null, written: 1, blockTokens: 128 },
  { ...ANTHROPIC, models: "Opus, Fable and Mythos 5", model: /(?:opus|fable|mythos)-5(?!-\d)/, minimumTokens: 512 },
  {
    ...ANTHROPIC,
    models: "Opus 4.8, 4.1 and 4, Sonnet 4.x and 5",
    model: /opus-4-8|sonnet-5(?!-\d)|sonnet-4|opus-4-[01]\b|opus-4-2025/,
    minimumTokens: 1_024,
  },
  {
    ...ANTHROPIC,
    models: "Opus 4.7, Mythos Preview, Haiku 3.x",
    model: /opus-4-7|mythos-preview|haiku-3|3-5-haiku|3-haiku/,
    minimumTokens: 2_048,
  },
  { ...ANTHROPIC, models: "Opus 4.5 and 4.6, Haiku 4.5", model: /opus-4-[56]|haiku-4-5/, minimumTokens: 4_096 },
  { ...ANTHROPIC, models: "others", model: null, minimumTokens: null },
  { ...GEMINI, models: "Gemini 3 and later", model: /gemini-(?:[3-9]|\d\d)/, minimumTokens: 4_096 },
  { ...GEMINI, models: "Gemini 2.5", model: /gemini-2\.5/, minimumTokens: 2_048 },
  { ...GEMINI, models: "others", model: null },
  {
    ...UNKNOWN,
    provider: "DeepSeek",
    host: /^api\.deepseek\.com$/,
    families: [],
    models: "all",
    model: null,
    cached: 1 / 50,
  },
  { ...UNKNOWN, provider: "Mistral", host: /^api\.mistral\.ai$/, families: ["mistral"], models: "all", model: null },
];

export interface PricedEngine {
  readonly host: string | null;
  readonly family: string;
}

/** What a host bills a model's prompts by; null for an unknown host. */
export function providerOf(host: string | null, model: string | null): ProviderPrice | null {
  return priceOf({ host, family: "" }, model);
}

/** What a prompt is billed by; null for an unknown provider. The host, else the family, names the provider; `model`, else the family, its row. */
export function priceOf({ host, family }: PricedEngine, model: string | null): ProviderPrice | null {
  const ofHost = host === null ? [] : PRICES.filter((row) => row.host.test(host));
  const rows = ofHost.length > 0 ? ofHost : PRICES.filter(({ families }) => families.includes(family));
  const isFor = (row: ProviderPrice) =>
    row.model === null || row.family === family || (model !== null && row.model.test(model));
  return rows.find(isFor) ?? null;
}

/** What is billed where a row does not say: a tenth for a cached token, nothing more for a write. */
export function ratesOf({ cached, written }: ProviderPrice): Pick<Prices, "cached" | "written"> {
  return { cached: cached ?? 1 / 10, written: written ?? 1 };
}

/** The planner's model of an engine that is not configured: its provider's prices, completed from the preset `hosted`, or a GPU's times. */
export function pricedModel(engine: PricedEngine, model: string | null): EngineModel {
  const price = priceOf(engine, model);
  if (price === null) return ENGINE_MODELS[DEFAULT_ENGINE_MODEL];
  const { blockTokens, minimumPrefixTokens } = ENGINE_MODELS.hosted;
  return {
    cost: { kind: "money", uncached: 1, ...ratesOf(price) },
    blockTokens: price.blockTokens ?? blockTokens,
    minimumPrefixTokens: price.minimumTokens ?? minimumPrefixTokens,
  };
}
