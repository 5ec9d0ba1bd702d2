import type { EngineModel } from "./engine-model.js";
import { type ProviderPrice, ratesOf } from "./prices.js";

/** Ends of a prompt that a later one may share. */
const PROMPT_ENDS = ["turn", "memories", "instructions"] as const;
export type PromptEnd = (typeof PROMPT_ENDS)[number];

export interface PlannedPrompt {
  readonly layout: "single" | "conversation";
  /** Whether an earlier prompt, or a draft, had all its memories in this order. */
  readonly wereSent: boolean;
  /** With all that its engine counts besides; null: not all of that is known. */
  readonly tokens: number | null;
  readonly hasHistory: boolean;
  /** How many of the newest prompts in a row came after the previous one had expired. */
  readonly lateInRow: number;
}

/** A provider may count so many tokens for one of memprefix's counter. */
const MOST_TOKENS_EACH = 2;

/** The ends that are not worth a cache mark (docs/engines.md, "Which marks pay"). None if writes are not billed. */
export function unreadEnds(price: ProviderPrice | null, prompt: PlannedPrompt): readonly PromptEnd[] {
  if (price === null) return [];
  const { written, cached } = ratesOf(price);
  if (written <= 1) return [];
  const { layout, wereSent, tokens, hasHistory, lateInRow } = prompt;
  if (tokens !== null && MOST_TOKENS_EACH * tokens < (price.minimumTokens ?? 0)) return PROMPT_ENDS;
  // Laplace's rule of succession, after a run of late prompts.
  const inTime = 1 / (lateInRow + 2);
  const isConversation = layout === "conversation";
  const probability: Readonly<Record<PromptEnd, number>> = {
    turn: isConversation || hasHistory ? inTime : 0,
    memories: isConversation || wereSent ? inTime : 0,
    // Other users' prompts have them too.
    instructions: 1,
  };
  const isWorth = (end: PromptEnd) => probability[end] * (1 - cached) > written - 1;
  return PROMPT_ENDS.filter((end) => !isWorth(end));
}

export function lateInRow(before: number, gapMs: number, { lifetimeSeconds }: ProviderPrice): number {
  return lifetimeSeconds !== null && gapMs > 1_000 * lifetimeSeconds ? before + 1 : 0;
}

/** The cost if no marks write more than the instructions: other computed tokens are no writes. */
export function billedBy(model: EngineModel, unread: readonly PromptEnd[] = []): EngineModel {
  const { cost } = model;
  if (cost.kind === "time" || !unread.includes("turn") || !unread.includes("memories")) return model;
  return { ...model, cost: { ...cost, written: cost.uncached } };
}
