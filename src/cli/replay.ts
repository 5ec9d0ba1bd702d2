import { SimulatedCache } from "../core/cache/simulated-cache.js";
import {
  DEFAULT_POLICY,
  ORDERING_POLICIES,
  POLICY_NAMES,
  type PolicyName,
  RETENTION_NAMES,
  type RetentionName,
} from "../core/index.js";
import { alignedTable } from "../eval/base/aligned-table.js";
import { readJson } from "../eval/base/run-files.js";
import { type RecordedTrace, readTrace } from "../eval/replay/recorded-trace.js";
import { type ReplayedTrace, type ReplayTotals, replayTrace } from "../eval/replay/replay-trace.js";
import { countO200k, encodeO200k } from "./o200k.js";

export interface ReplayCommand {
  readonly trace: string;
  readonly k: number;
  readonly policy?: PolicyName;
  readonly budgetRatio?: number;
  readonly layout: "single" | "conversation";
  readonly cache: "radix" | "blocks";
  /** Of the simulated cache; absent: unlimited. */
  readonly capacity?: number;
  readonly limit?: number;
  readonly json?: boolean;
}

/** Replays a trace: one policy as JSON, or all policies as a table; for a conversation all retentions. Throws `EvaluationError`. */
export function runReplay(command: ReplayCommand, print: (line: string) => void): void {
  const { k, policy = DEFAULT_POLICY, json } = command;
  const trace = readTrace(readJson(command.trace));
  const replayWith = (name: PolicyName, retention?: RetentionName) => replay(trace, name, command, retention);
  if (json) {
    print(JSON.stringify({ policy, k, ...replayWith(policy) }));
  } else if (command.layout === "conversation") {
    const rows = RETENTION_NAMES.map((name) => [name, ...totalsCells(replayWith(policy, name).totals)]);
    print(`${alignedTable(["retention", ...TOTALS], rows)}\n\nOrdered by ${policy}. ${SAME_FOR_ALL_POLICIES}`);
  } else {
    const names = command.policy === undefined ? POLICY_NAMES : [policy];
    print(policyTable(names.map((name) => ({ name, replayed: replayWith(name) }))));
  }
}

function replay(
  trace: RecordedTrace,
  policy: PolicyName,
  command: ReplayCommand,
  retention?: RetentionName,
): ReplayedTrace {
  const { k, budgetRatio = null, layout, limit, cache, capacity } = command;
  return replayTrace(
    trace,
    new SimulatedCache(cache, { capacityTokens: capacity }),
    { encode: encodeO200k, countTokens: countO200k },
    { k, policy: ORDERING_POLICIES[policy], budgetRatio, layout, retention, limit },
  );
}

/** Columns of every table: shares of memory tokens retrieved and of evidence, and tokens per request. */
const TOTALS = ["memory sent", "evidence", "prompt", "cached", "to prefill"] as const;

/** Printed in place of one row per policy, which would be equal. */
const SAME_FOR_ALL_POLICIES =
  "All policies have the same cache hits here: what a turn adds comes after everything cached.";

/** `at most`: the largest share of a single prompt. */
function policyTable(rows: readonly { readonly name: string; readonly replayed: ReplayedTrace }[]): string {
  const [sent, ...others] = TOTALS;
  const head = ["policy", "memory hits", "prefilled", sent, "at most", ...others];
  const lines = rows.map(({ name, replayed: { totals } }) => {
    const [sentCell = "", ...cells] = totalsCells(totals);
    const { memoryTokens, prefilledMemoryTokens: prefilled, retrievedTokens, largestSentRatio } = totals;
    const hits = ratioCell(memoryTokens - prefilled, memoryTokens);
    const most = largestSentRatio?.toFixed(3) ?? "-";
    return [name, hits, ratioCell(prefilled, retrievedTokens), sentCell, most, ...cells];
  });
  return alignedTable(head, lines);
}

function totalsCells(totals: ReplayTotals): string[] {
  const tokens = [totals.promptTokens, totals.cachedTokens, totals.uncachedTokens];
  return [
    ratioCell(totals.memoryTokens, totals.retrievedTokens),
    ratioCell(totals.evidenceInPrompt, totals.evidence),
    ...tokens.map((sum) => Math.round(sum / totals.requests).toLocaleString("en")),
  ];
}

/** A part of a whole; `-` for an empty whole. */
function ratioCell(part: number, whole: number): string {
  return whole === 0 ? "-" : (part / whole).toFixed(3);
}
