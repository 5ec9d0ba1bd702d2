/*
 * Limits on breakpoints (marks), read on 2026-11-21. Sources: https://platform.claude.com/docs/en/build-with-claude/prompt-caching,
 * https://platform.openai.com/docs/guides/prompt-caching and `prompt_cache_options` of the API reference.
 */

export interface BreakpointLimits {
  readonly maxMarks: number;
  /** Content blocks searched backwards from a mark, the marked one included: 1 finds only prefixes that end at the mark. */
  readonly lookBackBlocks: number;
}

/** "You can define up to 4 cache breakpoints"; "at most 20 positions per breakpoint, counting the breakpoint itself as the first". */
export const ANTHROPIC_LIMITS: BreakpointLimits = { maxMarks: 4, lookBackBlocks: 20 };

/** GPT-5.6 and later: "each request can write up to four breakpoints". The effect of a fifth on the first is not documented. */
export const OPENAI_LIMITS: BreakpointLimits = { maxMarks: 4, lookBackBlocks: 1 };
