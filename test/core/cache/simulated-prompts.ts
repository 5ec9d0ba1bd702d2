import fc from "fast-check";

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
export function longestShared(earlier: readonly (readonly number[])[], tokens: readonly number[]): number {
  return Math.max(0, ...earlier.map((prompt) => sharedTokens(prompt, tokens)));
}

/** Prompts of a few content blocks, of about `blockTokens` each, that often share a beginning and part anywhere. */
export function anyPrompt(blockTokens: number): fc.Arbitrary<number[]> {
  const length = fc.oneof(
    fc.constantFrom(blockTokens, 2 * blockTokens, blockTokens + 1),
    fc.integer({ min: 1, max: 2 * blockTokens }),
  );
  const block = fc.record({ kind: fc.nat({ max: 1 }), length });
  return fc
    .array(block, { maxLength: 7 })
    .map((blocks) => blocks.flatMap(({ kind, length }) => run(kind * 100_000 - 1, length)));
}

/** Prompts one after another; some are sent again. */
export function anyTraffic(blockTokens: number): fc.Arbitrary<number[][]> {
  return fc
    .array(anyPrompt(blockTokens), { minLength: 1, maxLength: 5 })
    .chain((prompts) => fc.array(fc.constantFrom(...prompts), { maxLength: 14 }));
}
