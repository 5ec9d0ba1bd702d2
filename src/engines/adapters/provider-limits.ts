/*
 * Providers' limits on breakpoints (marks), read on 2026-11-21. Change them here when a page changes. What a provider bills, and its shortest
 * cached prefix: `core/cost/prices.ts`.
 *
 * Anthropic: https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 * OpenAI:    https://platform.openai.com/docs/guides/prompt-caching and `prompt_cache_options` of the API reference
 */

/** How many marks a prompt may have, and where the provider looks for cached prefixes. */
export interface BreakpointLimits {
  /** Marks in one request, the caller's included. */
  readonly maxMarks: number;
  /** Content blocks searched backwards from a mark, the marked one included: 1 finds only prefixes that end at the mark. */
  readonly lookBackBlocks: number;
}

/** "You can define up to 4 cache breakpoints"; "at most 20 positions per breakpoint, counting the breakpoint itself as the first". */
export const ANTHROPIC_LIMITS: BreakpointLimits = { maxMarks: 4, lookBackBlocks: 20 };

/**
 * GPT-5.6 and later: "each request can write up to four breakpoints". Up to 80 are looked up, each exactly. No more than four are set here,
 * because what a fifth does to the first is not documented.
 */
export const OPENAI_LIMITS: BreakpointLimits = { maxMarks: 4, lookBackBlocks: 1 };
