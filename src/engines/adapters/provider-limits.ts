/*
 * Providers' limits on breakpoints (marks), read on 2026-11-21. Change them here when a page changes.
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
  /** Tokens of the shortest cached prefix; null where a model's is not known. */
  readonly minimumTokens: (model: string | undefined) => number | null;
}

/** Tokens of the shortest cached prefix of Anthropic's models. The first match counts. */
const ANTHROPIC_MINIMUM: readonly (readonly [model: RegExp, tokens: number])[] = [
  [/(?:opus|fable|mythos)-5(?!-\d)/, 512],
  [/opus-4-8|sonnet-5(?!-\d)|sonnet-4|opus-4-[01]\b|opus-4-2025/, 1_024],
  [/opus-4-7|mythos-preview|haiku-3|3-5-haiku|3-haiku/, 2_048],
  [/opus-4-[56]|haiku-4-5/, 4_096],
];

/** "You can define up to 4 cache breakpoints"; "at most 20 positions per breakpoint, counting the breakpoint itself as the first". */
export const ANTHROPIC_LIMITS: BreakpointLimits = {
  maxMarks: 4,
  lookBackBlocks: 20,
  minimumTokens: (model) => ANTHROPIC_MINIMUM.find(([name]) => model !== undefined && name.test(model))?.[1] ?? null,
};

/**
 * GPT-5.6 and later: "each request can write up to four breakpoints". Up to 80 are looked up, each exactly. No more than four are set here,
 * because what a fifth does to the first is not documented.
 */
export const OPENAI_LIMITS: BreakpointLimits = {
  maxMarks: 4,
  lookBackBlocks: 1,
  minimumTokens: () => 1_024,
};
