/**
 * `npm run bench -- capacity`: six users who ask in turn share one prefix cache of limited capacity. The users are six LoCoMo
 * conversations with recorded real Mem0 searches (question 1 of each, question 2 of each, …; first 150 of each), single prompts. The
 * share is of all prompt tokens: instructions, annotations and question included. Capacity 1 is what a cache without end holds when all
 * prompts of `retrieval` were served: the tokens of distinct blocks of 16, or of distinct prefixes in the radix cache. It is the same
 * for every row. `PARTS=128,64`: other parts of it than 4, 2 and 1. Takes `--data FOLDER` (`recorded-data.ts`), with the peer's orders.
 *
 * Floor of what is left to prefill: the question and the annotation, some 50 tokens per prompt, and what is seen for the first time.
 */

import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES, POLICY_NAMES } from "../src/core/index.js";
import {
  contextPilotsOwn,
  type PolicyFor,
  promptsInTurn,
  RECORDED_CONVERSATIONS,
  readRecording,
} from "../test/eval/locomo/recorded-searches.js";
import { neededData } from "./recorded-data.js";
import { cachedShare, distinctTokens } from "./shared-cache.js";
import { mean } from "./statistics.js";
import { printHead, printRow, whole } from "./table.js";

const LIMIT = 150;
const BUDGET_EACH = 1.5;
const PARTS = (process.env["PARTS"] ?? "4,2,1").split(",").map((part) => 1 / Number(part));

const data = neededData();
const recordings = RECORDED_CONVERSATIONS.map((name) => readRecording(data, name));

const ROWS: readonly [name: string, policyFor: PolicyFor, budgetEach: number | null][] = [
  ...POLICY_NAMES.filter((name) => name !== "carry-over").map((name): [string, PolicyFor, null] => [
    name,
    () => ORDERING_POLICIES[name],
    null,
  ]),
  ["ContextPilot's own, recorded", contextPilotsOwn, null],
  [`carry-over, each ≤ ${BUDGET_EACH}× (sends more)`, () => ORDERING_POLICIES["carry-over"], BUDGET_EACH],
];

for (const engine of ["blocks", "radix"] as const) {
  for (const k of [20, 100]) {
    const promptsOf = (policyFor: PolicyFor, budgetEach: number | null) =>
      promptsInTurn(recordings, { k, policyFor, budgetEach, limit: LIMIT });
    const reference = promptsOf(() => ORDERING_POLICIES.retrieval, null);
    const all = distinctTokens(reference, new SimulatedCache(engine));
    console.log(
      `\n${engine}, k = ${k}: ${reference.length} prompts; capacity 1 is ${all.toLocaleString("en")} tokens\n`,
    );
    printHead(["policy", ...PARTS.map((part) => `1/${1 / part}`), "tokens per prompt", "to prefill at ½"]);
    for (const [name, policyFor, budgetEach] of ROWS) {
      const prompts = promptsOf(policyFor, budgetEach);
      const shareAt = (part: number) =>
        cachedShare(prompts, new SimulatedCache(engine, { capacityTokens: Math.floor(part * all) }));
      const half = shareAt(1 / 2);
      const shares = PARTS.map((part) => (part === 1 / 2 ? half : shareAt(part)).toFixed(3).slice(1));
      const sent = mean(prompts.map(({ tokens }) => tokens.length));
      printRow([name, ...shares, whole(sent), whole(sent * (1 - half))]);
    }
  }
}
