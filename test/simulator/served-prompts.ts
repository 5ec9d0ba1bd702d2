import fc from "fast-check";
import type { SimulatedPrompt } from "../../src/simulator/prefix-cache.js";

/** A prompt that was served, at a time in milliseconds. */
export interface Served {
  readonly prompt: SimulatedPrompt;
  readonly now: number;
}

/** `count` tokens that say where they are: `from`, `from + 1`, … */
export function run(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, n) => from + n);
}

/** How many tokens two prompts share from the beginning. */
export function sharedTokens(a: readonly number[], b: readonly number[]): number {
  let shared = 0;
  while (shared < a.length && shared < b.length && a[shared] === b[shared]) shared++;
  return shared;
}

/** The most that a prompt shares with any of these. */
export function longestShared(earlier: readonly Served[], tokens: readonly number[]): number {
  return Math.max(0, ...earlier.map(({ prompt }) => sharedTokens(prompt.tokens, tokens)));
}

/**
 * Prompts of a few content blocks, of about `blockTokens` each, that often share a beginning and part anywhere; at most 4 breakpoints
 * at ends of blocks.
 */
export function anyPrompt(blockTokens: number): fc.Arbitrary<SimulatedPrompt> {
  const length = fc.oneof(
    fc.constantFrom(blockTokens, 2 * blockTokens, blockTokens + 1),
    fc.integer({ min: 1, max: 2 * blockTokens }),
  );
  const block = fc.record({ kind: fc.nat({ max: 1 }), length });
  return fc.array(block, { maxLength: 7 }).chain((blocks) => {
    const tokens = blocks.flatMap(({ kind, length }) => run(kind * 100_000 - 1, length));
    const blockEnds = blocks.map((_, n) => blocks.slice(0, n + 1).reduce((sum, { length }) => sum + length, 0));
    return fc
      .subarray(blockEnds, { maxLength: Math.min(4, blockEnds.length) })
      .map((breakpoints) => ({ tokens, blockEnds, breakpoints }));
  });
}

/** Prompts one after another, up to `longestWait` milliseconds apart; some are sent again. */
export function anyTraffic(blockTokens: number, longestWait = 0): fc.Arbitrary<Served[]> {
  return fc.array(anyPrompt(blockTokens), { minLength: 1, maxLength: 5 }).chain((prompts) => {
    const step = fc.record({ prompt: fc.constantFrom(...prompts), wait: fc.nat({ max: longestWait }) });
    return fc.array(step, { maxLength: 14 }).map((steps) => {
      let now = 0;
      return steps.map(({ prompt, wait }) => {
        now += wait;
        return { prompt, now };
      });
    });
  });
}
