/**
 * `npm run bench -- papers permutation`: what CRAFT's permutation by access frequency reuses, beside the retrieval order, 100 random permutations and
 * memprefix's order. Recorded real Mem0 searches of six LoCoMo users, first 150 questions each, single prompts, an endless cache that is exact
 * on blocks; medians over the users. `time`: the time to the first token in retrieval order ÷ in this one, by the cost model `gpu`, of
 * prompts whose blocks have 256 tokens each, as CRAFT's have 128 to 512; memories have some 18 (`BLOCK_TOKENS=18`). CRAFT's own times are against
 * no cache at all: the last two columns. A second table has what the retrieval order and counts over fewer requests spare at more depths. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Floor of a random permutation: the first block is one of k, so a hit of one block is as good as chance.
 */
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { ENGINE_MODELS, ORDERING_POLICIES, type PolicyName, promptCost } from "../src/core/index.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { composeTrace } from "../src/eval/replay/replay-trace.js";
import { leadingHeld } from "./overlap-shares.js";
import { neededTraces } from "./recorded-data.js";
import { seeded } from "./seeded.js";
import { mean, median } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const [LIMIT, PERMUTATIONS] = [150, 100];
const BLOCK_TOKENS = Number(process.env["BLOCK_TOKENS"] ?? 256);
/** Instructions and question. */
const OTHER_TOKENS = 64;
const POLICIES = ["access-frequency", "cp-tree", "context-pilot", "knowledge-tree", "prefix-exact"] as const;

type Orders = readonly (readonly number[])[];

const traces = neededTraces();

function ordersBy(policy: PolicyName, trace: RecordedTrace, k: number): Orders {
  const options = { k, policy: ORDERING_POLICIES[policy], budgetRatio: null, layout: "single", limit: LIMIT } as const;
  const prompts = composeTrace(trace, { encode: encodeO200k, countTokens: countO200k }, options);
  return [...prompts].map(({ order }) => order);
}

/** Most often found in the last `window` searches first; CRAFT's window is 1,000. */
function byCounts({ questions }: RecordedTrace, k: number, window: number): Orders {
  const searches = questions.slice(0, LIMIT).map(({ retrieved }) => retrieved.slice(0, k));
  return searches.map((search, at) => {
    const counts = new Map<number, number>();
    for (const block of searches.slice(Math.max(0, at - window), at).flat())
      counts.set(block, (counts.get(block) ?? 0) + 1);
    return [...search].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  });
}

function shuffled(orders: Orders, random: () => number): Orders {
  return orders.map((order) =>
    order
      .map((block) => ({ block, key: random() }))
      .sort((a, b) => a.key - b.key)
      .map(({ block }) => block),
  );
}

interface Measured {
  /** Share of blocks that the cache held. */
  readonly held: number;
  /** Mean time to the first token. */
  readonly ms: number;
  /** Tokens of a prompt ÷ those computed of it, which is what a time without fixed parts would be: of all prompts, and of the median one. */
  readonly fewer: number;
  readonly fewerOfMedian: number;
}

function measured(orders: Orders): Measured {
  const held = leadingHeld(orders);
  const blocks = orders.reduce((sum, { length }) => sum + length, 0);
  const ms = orders.map(({ length }, at) =>
    promptCost(ENGINE_MODELS.gpu, length * BLOCK_TOKENS + OTHER_TOKENS, (held[at] ?? 0) * BLOCK_TOKENS),
  );
  const all = orders.map(({ length }) => length * BLOCK_TOKENS + OTHER_TOKENS);
  const computed = all.map((tokens, at) => tokens - (held[at] ?? 0) * BLOCK_TOKENS);
  const sum = (values: readonly number[]) => values.reduce((total, each) => total + each, 0);
  return {
    held: sum(held) / blocks,
    ms: mean(ms),
    fewer: sum(all) / sum(computed),
    fewerOfMedian: median(all) / median(computed),
  };
}

/** Medians over the users; the time is that of the retrieval order ÷ this one's. */
function row(k: number, name: string, first: readonly Measured[], all: readonly Measured[]): void {
  const held = 100 * median(all.map((each) => each.held));
  const time = median(all.map(({ ms }, at) => (first[at]?.ms ?? 0) / ms));
  const [fewer, ofMedian] = [median(all.map((each) => each.fewer)), median(all.map((each) => each.fewerOfMedian))];
  printRow([k, name, held.toFixed(1), ...[time, fewer, ofMedian].map((ratio) => `${ratio.toFixed(2)}×`)]);
}

printHead(["k", "order", "blocks held, %", "time", "fewer tokens than without a cache", "median prompt"]);
for (const k of [5, 20]) {
  const asRetrieved = traces.map(({ questions }) =>
    questions.slice(0, LIMIT).map(({ retrieved }) => retrieved.slice(0, k)),
  );
  const first = asRetrieved.map(measured);
  row(k, "as retrieved", first, first);
  const random = seeded(1);
  // Of each user, by what they hold: the first has least, the last most.
  const permuted = asRetrieved.map((orders) =>
    Array.from({ length: PERMUTATIONS }, () => measured(shuffled(orders, random))).sort((a, b) => a.held - b.held),
  );
  for (const [name, at] of [
    ["least", 0],
    ["middle", PERMUTATIONS / 2],
    ["most", PERMUTATIONS - 1],
  ] as const) {
    const ofUsers = permuted.flatMap((all) => all[at] ?? []);
    row(k, `at random, ${name} of ${PERMUTATIONS}`, first, ofUsers);
  }
  for (const policy of POLICIES) {
    const ofUsers = traces.map((trace) => measured(ordersBy(policy, trace, k)));
    row(k, `\`${policy}\``, first, ofUsers);
  }
}

const DEPTHS = [2, 5, 8, 20];
console.log("");
printHead(["fewer tokens than without a cache", ...DEPTHS.map((k) => `k = ${k}`)]);
for (const [name, window] of [
  ["as retrieved", 0],
  ["counts of the last 10 requests", 10],
  ["counts of the last 50", 50],
  ["counts of all", LIMIT],
] as const) {
  const cells = DEPTHS.map((k) => median(traces.map((trace) => measured(byCounts(trace, k, window)).fewer)).toFixed(2));
  printRow([name, ...cells.map((cell) => `${cell}×`)]);
}
