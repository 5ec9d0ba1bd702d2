import type { EngineModel } from "./engine-model.js";
import type { ProviderPrice } from "./prices.js";

/** Ends of a prompt that a later one may share: of its turn, of the turn's memories, of the instructions. */
const PROMPT_ENDS = ["turn", "memories", "instructions"] as const;
export type PromptEnd = (typeof PROMPT_ENDS)[number];

/** What decides which of a prompt's ends are read again. */
export interface PlannedPrompt {
  readonly layout: "single" | "conversation";
  /** Whether an earlier prompt, or a draft of this one, had all its memories in this order. */
  readonly wereSent: boolean;
  /** Its tokens with all that its engine counts besides, estimated; null: not all of that is known. */
  readonly tokens: number | null;
  /** Whether it has messages before the last one, besides its instructions. */
  readonly hasHistory: boolean;
  /** How many of the newest prompts in a row, this one included, came when the one before them had left the cache. */
  readonly lateInRow: number;
}

/** A provider may count so many tokens for one of memprefix's counter. */
const MOST_TOKENS_EACH = 2;

/**
 * The ends of a prompt that are not worth a mark: writing there costs `(written − 1)` of a token's price, and saves `(1 − cached)` of it with
 * the probability that a later prompt reads it in time (docs/engines.md, "Which marks are worth their price"). None where no writes are billed.
 *
 * @param price null: no provider that is known bills the prompt
 */
export function unreadEnds(price: ProviderPrice | null, prompt: PlannedPrompt): readonly PromptEnd[] {
  if (price === null || (price.written ?? 1) <= 1) return [];
  const { layout, wereSent, tokens, hasHistory, lateInRow } = prompt;
  const { written, cached, minimumTokens } = price;
  if (tokens !== null && MOST_TOKENS_EACH * tokens < (minimumTokens ?? 0)) return PROMPT_ENDS;
  // Laplace's rule of succession, after a run of late prompts.
  const inTime = 1 / (lateInRow + 2);
  const isConversation = layout === "conversation";
  const probability: Readonly<Record<PromptEnd, number>> = {
    turn: isConversation || hasHistory ? inTime : 0,
    memories: isConversation || wereSent ? inTime : 0,
    // Other users' prompts have them too.
    instructions: 1,
  };
  const isWorth = (end: PromptEnd) => probability[end] * (1 - (cached ?? 1 / 10)) > (written ?? 1) - 1;
  return PROMPT_ENDS.filter((end) => !isWorth(end));
}

/** How many prompts in a row were late, with one more that came so long after the one before. */
export function lateInRow(before: number, gapMs: number, { lifetimeSeconds }: ProviderPrice): number {
  return lifetimeSeconds !== null && gapMs > 1_000 * lifetimeSeconds ? before + 1 : 0;
}

/** What a prompt costs where no marks write more than its instructions: its other computed tokens are no writes. */
export function billedBy(model: EngineModel, unread: readonly PromptEnd[] = []): EngineModel {
  const { cost } = model;
  if (cost.kind === "time" || !unread.includes("turn") || !unread.includes("memories")) return model;
  return { ...model, cost: { ...cost, written: cost.uncached } };
}
