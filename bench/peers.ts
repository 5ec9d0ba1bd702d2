/**
 * `npm run bench -- peers`: share of memory tokens that an endless, block-exact prefix cache held, over recorded real Mem0 searches of
 * LoCoMo questions (first 150 of each conversation), by policy; medians over the conversations. The recorded orders are those that
 * ContextPilot 0.4.1's own code made. Takes `--data FOLDER` (`recorded-data.ts`), with the peer's orders.
 *
 * Floor of the prefilled share: what is seen for the first time, 0.09 at k = 20 and 0.02 at k = 100.
 */

import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES, POLICY_NAMES, type PolicyName } from "../src/core/index.js";
import { replayTrace, type TraceReplay } from "../src/eval/replay/replay-trace.js";
import {
  contextPilotsOwn,
  memoryHitShare,
  RECORDED_CONVERSATIONS,
  readRecording,
} from "../test/eval/locomo/recorded-searches.js";
import { neededData } from "./recorded-data.js";
import { median } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const LIMIT = 150;
/** Most memory tokens sent ÷ retrieved: over all prompts so far, or in each of them. */
type Budget = Pick<TraceReplay, "budgetRatio" | "budgetEach">;
const NO_BUDGET: Budget = { budgetRatio: null };
const RATIOS = [1.25, 1.5, 2, 3] as const;
const BUDGETS: readonly [name: string, budget: Budget][] = [
  ...RATIOS.map((ratio): [string, Budget] => [`≤ ${ratio}×`, { budgetRatio: ratio }]),
  ...RATIOS.map((ratio): [string, Budget] => [`each ≤ ${ratio}×`, { budgetRatio: null, budgetEach: ratio }]),
];
const data = neededData();

const recordings = RECORDED_CONVERSATIONS.map((name) => readRecording(data, name));

function totalsOf(policy: PolicyName, k: number, budget: Budget) {
  return recordings.map(({ trace }) => {
    const cache = new SimulatedCache("blocks");
    const options = { k, policy: ORDERING_POLICIES[policy], ...budget, layout: "single", limit: LIMIT } as const;
    return replayTrace(trace, cache, { encode: encodeO200k, countTokens: countO200k }, options).totals;
  });
}

function recordedHits(k: number): number[] {
  const asked = { k, policyFor: contextPilotsOwn, budgetEach: null, limit: LIMIT };
  return recordings.map((recording) => memoryHitShare(recording, asked));
}

const TITLES = ["policy, budget", "k", "prefilled", "hits ÷ ContextPilot", "by conversation", "memory sent"];
printHead([...TITLES, "at most", "evidence"]);
for (const k of [20, 100]) {
  const recorded = recordedHits(k);
  const arms: [name: string, policy: PolicyName, budget: Budget][] = [
    ...POLICY_NAMES.filter((name) => name !== "carry-over").map((name): [string, PolicyName, Budget] => [
      name,
      name,
      NO_BUDGET,
    ]),
    ...BUDGETS.map(([name, budget]): [string, PolicyName, Budget] => [`carry-over, ${name}`, "carry-over", budget]),
  ];
  for (const [name, policy, budget] of arms) {
    const totals = totalsOf(policy, k, budget);
    const prefilled = totals.map((t) => t.prefilledMemoryTokens / t.retrievedTokens);
    const ratios = prefilled.map((share, at) => (1 - share) / (recorded[at] ?? 1));
    const sent = median(totals.map((t) => t.sentRatio ?? 0));
    const most = Math.max(...totals.map((t) => t.largestSentRatio ?? 0));
    const evidence = median(totals.map((t) => t.evidenceInPrompt / t.evidence));
    const each = ratios.map((ratio) => ratio.toFixed(2)).join(" ");
    const figures = [median(prefilled).toFixed(4), median(ratios).toFixed(2), each, sent.toFixed(2), most.toFixed(2)];
    printRow([name, k, ...figures, evidence.toFixed(3)]);
  }
}
