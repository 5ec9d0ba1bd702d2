/**
 * `npm run bench -- batch`: planning requests that are all known beforehand. Without a flag all parts, else
 *
 *   -- --build          time, heap and resident memory of Alg. 4's tree over 2,000, 12,000 and 100,000 contexts, each in a process of its own
 *   -- --plan           time and memory of a plan for 10,000 requests, in an empty cache and behind 10,000 that were served
 *   -- --hits           hit ratios over recorded real Mem0 searches of LoCoMo questions, all six conversations as one batch; takes `--data FOLDER` (`recorded-data.ts`), as does --bound
 *   -- --live           hit ratios over the same in batches of 1, 8, 64, 512 and all, each planned from what those before left cached, and one by one; takes `--data` too
 *   -- --bound          hit ratios over the same that no plan can exceed which sends each request exactly its own blocks
 *
 * Synthetic contexts have k distinct blocks of 5,000, popular ones more often (Zipf, exponent 0.8), 16 tokens each.
 *
 * Floor of an exact build: each of the N²/2 distances is written once and added up once on the way to the root; at 12,000 that is 576 MB
 * twice, some 0.3 s of memory traffic; half of it column by column, a cache line and a page for every 8 bytes: 72 million × 30 ns = 2 s.
 */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { clusterContexts, DEFAULT_BATCH_PLANNER, groupBy, type Label, planBatch } from "../src/core/index.js";
import { executedLive, knownAfter } from "./live-batches.js";
import { onlineOrders } from "./online-orders.js";
import { RecordedBatch } from "./recorded-batch.js";
import { neededTraces } from "./recorded-data.js";
import { hitRatioBound } from "./saving-bound.js";
import { seeded } from "./seeded.js";
import { inTurn } from "./shared-cache.js";
import { median } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const BLOCKS = 5_000;
const BLOCK_TOKENS = 16;
const EXPONENT = 0.8;

function contexts(count: number, k: number): Label[][] {
  const random = seeded(1);
  const upTo = new Float64Array(BLOCKS);
  let sum = 0;
  for (let rank = 0; rank < BLOCKS; rank++) {
    sum += 1 / (rank + 1) ** EXPONENT;
    upTo[rank] = sum;
  }
  const draw = () => {
    const at = random() * sum;
    let [low, high] = [0, BLOCKS - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((upTo[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return (low + 1) as Label;
  };
  return Array.from({ length: count }, () => {
    const blocks = new Set<Label>();
    while (blocks.size < k) blocks.add(draw());
    return [...blocks];
  });
}

/** Runs one measurement in a process of its own, so that memory is its own. */
function alone(...args: readonly string[]): void {
  spawnSync(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), ...args], { stdio: "inherit" });
}

function report(name: string, run: () => unknown, times: number): void {
  const taken: number[] = [];
  for (let n = 0; n < times; n++) {
    const start = performance.now();
    run();
    taken.push((performance.now() - start) / 1_000);
  }
  const heap = process.memoryUsage().heapUsed / 2 ** 20;
  const resident = process.resourceUsage().maxRSS / 2 ** 10;
  printRow([name, median(taken).toFixed(2), heap.toFixed(0), resident.toFixed(0)]);
}

const HEADING = ["", "median, s", "heap, MiB", "peak RSS, MiB"];

function build(): void {
  printHead(HEADING);
  for (const count of [2_000, 12_000, 100_000]) alone("--build-one", String(count));
}

function buildOne(count: number): void {
  const all = contexts(count, 15);
  const name = `tree of ${count.toLocaleString("en")}, ${count > 12_000 ? "in parts" : "exact"}`;
  report(name, () => clusterContexts(all), count > 2_000 ? 1 : 5);
}

function plan(): void {
  printHead(HEADING);
  for (const k of [15, 100]) for (const served of [0, 10_000]) alone("--plan-one", String(k), String(served));
}

/** Plans 10,000 requests behind an index of so many others. */
function planOne(k: number, served: number): void {
  const requests = contexts(10_000 + served, k).map((blocks) => ({
    key: "one",
    blocks: blocks.map((label) => ({ label, tokens: BLOCK_TOKENS })),
  }));
  const batch = requests.slice(served);
  const known = knownAfter(requests.slice(0, served), batch);
  report(`10,000 requests, k = ${k}, ${served} served`, () => planBatch(batch, DEFAULT_BATCH_PLANNER, [known]), 3);
}

/** How many contexts at once the bound looks at; more at k = 100 take minutes. */
const BOUND_DEPTHS = { 20: 12, 100: 4 } as const;

function bound(): void {
  const traces = neededTraces();
  printHead(["k", "Alg. 4 + 5", "shared prefixes", "no plan above", "÷ Alg. 4 + 5"]);
  for (const k of [20, 100] as const) {
    const batch = new RecordedBatch(traces, k, encodeO200k);
    const theirs = batch.hitRatio(batch.executedBy("context-pilot"), new SimulatedCache("blocks"));
    const ours = batch.hitRatio(batch.executedBy("shared-prefixes"), new SimulatedCache("blocks"));
    const most = hitRatioBound(batch, BOUND_DEPTHS[k]);
    printRow([k, ...[theirs, ours, most].map((ratio) => ratio.toFixed(3)), (most / theirs).toFixed(2)]);
  }
}

function live(): void {
  const traces = neededTraces();
  const sizes = [null, 1, 8, 64, 512, Number.POSITIVE_INFINITY];
  const nameOf = (size: number | null) =>
    size === null ? "one by one" : size === Number.POSITIVE_INFINITY ? "all" : String(size);
  console.log("hit ratio in batches of so many, each planned from what those before left cached; an endless cache");
  printHead(["users", "k", ...sizes.map(nameOf)]);
  for (const k of [20, 100]) {
    const batch = new RecordedBatch(traces, k, encodeO200k);
    for (const [name, order] of [
      ["user by user", [...batch.requests.keys()]],
      ["in turn", [...inTurn([...groupBy(batch.requests.keys(), (at) => batch.requests[at]?.key).values()])]],
    ] as const) {
      const executed = sizes.map((size) => executedLive(batch.requests, size, DEFAULT_BATCH_PLANNER, order));
      printRow([name, k, ...executed.map((all) => batch.hitRatio(all, new SimulatedCache("blocks")).toFixed(3))]);
    }
  }
}

function hits(): void {
  const traces = neededTraces();
  for (const k of [20, 100]) {
    const batch = new RecordedBatch(traces, k, encodeO200k);
    const { promptTokens, memoryTokens, requests } = batch;
    const capacities: readonly (readonly [string, number])[] = [
      ["all prompts", promptTokens],
      ["1/2", promptTokens / 2],
      ["1/4", promptTokens / 4],
      ["memories once", memoryTokens],
      ["1/2", memoryTokens / 2],
      ["1/4", memoryTokens / 4],
      ["3 prompts", (3 * promptTokens) / requests.length],
      ["2 prompts", (2 * promptTokens) / requests.length],
    ];
    console.log(
      `hit ratio by capacity, k = ${k}; ${requests.length} requests, ${promptTokens} prompt tokens, ${memoryTokens} memory tokens`,
    );
    printHead(["order and schedule", ...capacities.map(([name]) => name)]);
    const executed = new Map([
      ["retrieval order, as they came", batch.executedBy("retrieval")],
      ["Alg. 2 online, as they came", onlineOrders(batch)],
      ...batch.executedByPlanners(),
    ]);
    for (const [name, all] of executed) {
      const cells = capacities.map(([, capacityTokens]) =>
        batch.hitRatio(all, new SimulatedCache("blocks", { capacityTokens })).toFixed(3),
      );
      printRow([name, ...cells]);
    }
  }
}

const given = process.argv.slice(2).filter((argument, at, all) => argument !== "--data" && all[at - 1] !== "--data");
const [flag, ...rest] = given;
if (flag === "--build-one") buildOne(Number(rest[0]));
else if (flag === "--plan-one") planOne(Number(rest[0]), Number(rest[1]));
else {
  const parts = {
    "--build": build,
    "--plan": plan,
    "--hits": hits,
    "--live": live,
    "--bound": bound,
  };
  const chosen = Object.entries(parts).filter(([name]) => flag === undefined || given.includes(name));
  if (chosen.length === 0) console.error(`one of ${Object.keys(parts).join(", ")}`);
  for (const [, run] of chosen) run();
}
