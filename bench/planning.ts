/**
 * `npm run bench:planning`: ordering one request for a user with many served sequences, in-process, without commit.
 * An index holds the 20,000 nodes used last (`DEFAULT_SCOPE_BOUNDS`), whatever was served before.
 *
 * Floor: every retrieved block is looked up once, and every recent request once against it: some 20 × 64 set look-ups at k = 20, 100 × 64
 * at k = 100, about 10 ns each: 0.013 and 0.064 ms. Expected: two to three times that.
 */
import {
  DEFAULT_SCOPE_BOUNDS,
  type Digest,
  EMPTY_SCOPE,
  ENGINE_MODELS,
  type Label,
  ORDERING_POLICIES,
  type PolicyName,
  ScopeState,
  sparedBy,
  type TurnId,
} from "../src/core/index.js";
import { seeded } from "./seeded.js";

const MEMORIES = 400;
const MEASURED = 300;
const TOKENS = 25;
const ANCHOR = "bench" as Digest;

/** k distinct blocks, popular ones more often (Zipf, exponent 0.8). */
function retrieve(k: number, random: () => number): { label: Label; tokens: number }[] {
  const drawn = Array.from({ length: MEMORIES }, (_, rank) => ({ rank, key: random() ** ((rank + 1) ** 0.8) }));
  return drawn
    .sort((a, b) => b.key - a.key)
    .slice(0, k)
    .map(({ rank }) => ({ label: (rank + 1) as Label, tokens: TOKENS }));
}

function measure(name: PolicyName, k: number, sequences: number): number {
  const policy = ORDERING_POLICIES[name];
  const state = new ScopeState(EMPTY_SCOPE, () => TOKENS, DEFAULT_SCOPE_BOUNDS);
  const random = seeded(k);
  const times: number[] = [];
  for (let turn = 1; turn <= sequences + MEASURED; turn++) {
    const retrieved = retrieve(k, random);
    const carrying =
      name === "carry-over"
        ? {
            tokens: (k * TOKENS) / 2,
            ownTokens: (k * TOKENS) / 2,
            bankedTokens: null,
            knownTokens: MEMORIES * TOKENS,
            spared: sparedBy(ENGINE_MODELS.gpu, { before: 50, retrieved: k * TOKENS, after: 50 }),
            tokensOf: () => TOKENS,
          }
        : null;
    const request = { anchor: ANCHOR, retrieved, carrying };
    const start = performance.now();
    const ordering = policy.order(request, state);
    if (turn > sequences) times.push(performance.now() - start);
    policy.learn?.(request, ordering, state, turn as TurnId);
    state.index.insert(ANCHOR, ordering.labels, turn);
    state.recent.take(
      retrieved.map(({ label }) => label),
      turn as TurnId,
    );
    state.drain();
  }
  return times.sort((a, b) => a - b)[MEASURED >> 1] ?? Number.NaN;
}

console.log(`ordering one request, median of ${MEASURED}, ms`);
console.log("| policy       |   k | 2,000 served | 100,000 served | ratio |");
console.log("| ------------ | --: | -----------: | -------------: | ----: |");
measure("prefix-exact", 20, 2_000);
for (const policy of ["prefix-exact", "context-pilot", "carry-over"] as const) {
  for (const k of [20, 100]) {
    const few = measure(policy, k, 2_000);
    const many = measure(policy, k, 100_000);
    const cells = [few.toFixed(3).padStart(12), many.toFixed(3).padStart(14), (many / few).toFixed(1).padStart(5)];
    console.log(`| ${policy.padEnd(12)} | ${String(k).padStart(3)} | ${cells.join(" | ")} |`);
  }
}
