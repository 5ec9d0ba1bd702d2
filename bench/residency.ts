/**
 * `npm run bench -- residency`: by how many tokens a plan's expectation misses what a small engine's cache really held, over recorded real
 * Mem0 searches of LoCoMo questions (first 150 of each conversation), simulated as vLLM's. Each row says what memprefix gets to know: nothing, or what the
 * engine cached of each prompt. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * Floor of the error: an engine caches whole blocks of 16 tokens and a plan counts to the token, so half a block, some 7 tokens, less
 * what the estimate is short of a chat template's own tokens.
 */
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { ORDERING_POLICIES, type PolicyName } from "../src/core/index.js";
import { type ReplayedRequest, replayTrace, type TraceReplay } from "../src/eval/replay/replay-trace.js";
import { neededTraces } from "./recorded-data.js";
import { mean } from "./statistics.js";
import { printHead, printRow, whole } from "./table.js";

const traces = neededTraces();

interface Arm {
  readonly layout: TraceReplay["layout"];
  readonly policy: PolicyName;
  readonly k: number;
  readonly capacityTokens: number;
}

const SINGLE = [
  ["prefix-exact", 20],
  ["prefix-exact", 100],
  ["carry-over", 20],
] as const;
const ARMS: readonly Arm[] = [
  ...SINGLE.flatMap(([policy, k]) =>
    [1_000, 4_000, 16_000].map((capacityTokens): Arm => ({ layout: "single", policy, k, capacityTokens })),
  ),
  { layout: "conversation", policy: "prefix-exact", k: 20, capacityTokens: 8_000 },
];

function requestsOf(arm: Arm, reports: boolean): ReplayedRequest[] {
  const { capacityTokens, layout, k } = arm;
  const policy = ORDERING_POLICIES[arm.policy];
  const budgetEach = arm.policy === "carry-over" ? 2 : null;
  const counters = { encode: encodeO200k, countTokens: countO200k };
  return traces.flatMap((trace) => {
    const cache = new SimulatedCache("blocks", { capacityTokens });
    return replayTrace(trace, cache, counters, {
      k,
      policy,
      budgetRatio: null,
      budgetEach,
      layout,
      limit: 150,
      reports,
    }).requests;
  });
}

/** Mean error of the expectation, and the tokens that were cached, per request. */
function cellOf(requests: readonly ReplayedRequest[]): string {
  const errors = requests.map(({ expectedCachedTokens: expected, cachedTokens }) => Math.abs(expected - cachedTokens));
  return `${mean(errors).toFixed(0)} / ${mean(requests.map(({ cachedTokens }) => cachedTokens)).toFixed(0)}`;
}

console.log("mean |expected − cached| / mean cached, tokens per request, by what memprefix is told");
printHead(["prompts", "policy", "k", "cache holds", "nothing", "reports"]);
for (const arm of ARMS) {
  const { layout, policy, k, capacityTokens } = arm;
  printRow([
    layout,
    policy,
    k,
    whole(capacityTokens),
    ...[false, true].map((reports) => cellOf(requestsOf(arm, reports))),
  ]);
}
