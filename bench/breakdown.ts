/**
 * `npm run bench -- papers breakdown`: what ordering and what scheduling add to a cache's hits, step by step, and how much that depends on the cache's
 * size: ContextPilot's breakdown (k = 15, or `K`) on recorded real Mem0 searches. Six LoCoMo users ask in turn (all their questions); prompts
 * without annotations; vLLM's block-hash cache and SGLang's radix cache, with room for all prompts and for less. Takes `--data FOLDER`
 * (`recorded-data.ts`).
 *
 * Ceiling of any plan that sends each request exactly its own blocks: the last line.
 */
import { encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import type { BatchPlanner } from "../src/core/index.js";
import { executedLive } from "./live-batches.js";
import { longestMatchFirst } from "./longest-match.js";
import { onlineOrders } from "./online-orders.js";
import { type ExecutedRequest, RecordedBatch } from "./recorded-batch.js";
import { neededTraces } from "./recorded-data.js";
import { hitRatioBound } from "./saving-bound.js";
import { inTurn } from "./shared-cache.js";
import { printHead, printRow } from "./table.js";

const K = Number(process.env["K"] ?? 15);
/** Contexts at once that the bound looks at. */
const BOUND_DEPTH = 12;
const SHARES = [1 / 64, 1 / 16, 1 / 4, 1] as const;

const traces = neededTraces();
const batch = new RecordedBatch(traces, K, encodeO200k);

let before = 0;
const byUser = traces.map(({ questions }) => {
  before += questions.length;
  return questions.map((_, at) => before - questions.length + at);
});
/** Requests in the order in which they come. */
const arrivals = [...inTurn(byUser)];
const place = new Map(arrivals.map((request, at) => [request, at]));

/** The same orders, executed as the requests came. */
const asTheyCame = (executed: readonly ExecutedRequest[]) =>
  executed.toSorted((a, b) => (place.get(a.request) ?? 0) - (place.get(b.request) ?? 0));

/** One by one, or in batches of so many, planned behind what was served before. */
const live = (size: number | null, planner?: BatchPlanner, isOnTrees = true): readonly ExecutedRequest[] =>
  executedLive(batch.requests, size, planner, arrivals, isOnTrees ? new Map() : null);

const known = batch.executedBy("context-pilot");
const ROWS: readonly (readonly [name: string, executed: readonly ExecutedRequest[]])[] = [
  ["retrieval order, as they came", asTheyCame(batch.executedBy("retrieval"))],
  ["+ ordering, online (Alg. 2)", asTheyCame(onlineOrders(batch))],
  ["+ ordering, all known (Alg. 4)", asTheyCame(known)],
  ["+ scheduling (Alg. 4 and 5)", known],
  ["Alg. 4 and 5, each batch of 64 by itself", live(64, "context-pilot", false)],
  ["Alg. 4 and 5, each of 512", live(512, "context-pilot", false)],
  ["Alg. 4 and 5, then Alg. 2 and 5 on the tree, batches of 64", live(64, "context-pilot")],
  ["of 512", live(512, "context-pilot")],
  ["memprefix, one by one (`prefix-exact`)", live(null)],
  ["memprefix, batches of 64", live(64)],
  ["memprefix, batches of 512", live(512)],
  ["memprefix, all known (`shared-prefixes`)", live(Number.POSITIVE_INFINITY)],
];

console.log(
  `${batch.requests.length} requests, k = ${K}; % of ${batch.promptTokens.toLocaleString("en")} prompt tokens`,
);
for (const engine of ["blocks", "radix"] as const) {
  console.log(`\n${engine}, room for so much of all prompts\n`);
  printHead(["", "1/64", "1/16", "1/4", "all"]);
  for (const [name, executed] of ROWS) {
    const cells = SHARES.map((share) => {
      const capacityTokens = Math.floor(share * batch.promptTokens);
      return (100 * batch.hitRatio(executed, new SimulatedCache(engine, { capacityTokens }))).toFixed(1);
    });
    printRow([name, ...cells]);
  }
}
console.log("\nradix, longest match first (SGLang's `lpm`), retrieval order\n");
printHead(["waiting", "1/64", "1/16", "1/4", "all"]);
for (const waiting of [64, batch.requests.length]) {
  const cells = SHARES.map((share) => {
    const limits = { capacityTokens: Math.floor(share * batch.promptTokens) };
    const came = asTheyCame(batch.executedBy("retrieval"));
    const executed = longestMatchFirst(came, (each) => batch.promptOf(each), limits, waiting);
    return (100 * batch.hitRatio(executed, new SimulatedCache("radix", limits))).toFixed(1);
  });
  printRow([waiting, ...cells]);
}

console.log("\nblocks, room for a sixteenth: by eighths of the run\n");
printHead(["", ...Array.from({ length: 8 }, (_, at) => at + 1)]);
for (const [name, executed] of ROWS) {
  const cache = new SimulatedCache("blocks", { capacityTokens: Math.floor(batch.promptTokens / 16) });
  const cells = Array.from({ length: 8 }, (_, at) => {
    const part = executed.slice((at * executed.length) / 8, ((at + 1) * executed.length) / 8);
    return (100 * batch.hitRatio(part, cache)).toFixed(1);
  });
  printRow([name, ...cells]);
}
console.log(`\nno plan above ${(100 * hitRatioBound(batch, BOUND_DEPTH)).toFixed(1)} %`);
