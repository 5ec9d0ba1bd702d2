import { SimulatedCache } from "../core/cache/simulated-cache.js";
import {
  DEFAULT_ENGINE_MODEL,
  DEFAULT_POLICY,
  ENGINE_MODELS,
  ORDERING_POLICIES,
  POLICY_NAMES,
  type PolicyName,
  RETENTION_NAMES,
  type RetentionName,
} from "../core/index.js";
import { largest } from "../core/text/collections.js";
import { alignedTable } from "../eval/base/aligned-table.js";
import { answerOf } from "../eval/base/hand-built.js";
import { EvaluationError, readJson } from "../eval/base/run-files.js";
import { type RecordedTrace, readTrace } from "../eval/replay/recorded-trace.js";
import { type ReplayedTrace, type ReplayTotals, replayTrace } from "../eval/replay/replay-trace.js";
import { type ReplayedWindow, replayWindows, WINDOW_HISTORIES, type WindowArm } from "../eval/run/replay-windows.js";
import { openMeasuredMemprefix } from "./assemble.js";
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
  /** Last messages that a conversation's client sends; absent: all. */
  readonly window?: number;
  /** Tokens of every answer in a conversation's history; absent: the recorded answers. */
  readonly answerTokens?: number;
  readonly json?: boolean;
}

/**
 * Replays a trace: one policy as JSON, or all policies as a table; for a conversation all retentions, for a window all histories. `note` gets
 * lines that are not part of the result. Throws {@link EvaluationError}.
 */
export async function runReplay(
  command: ReplayCommand,
  print: (line: string) => void,
  note: (line: string) => void,
): Promise<void> {
  const { k, policy = DEFAULT_POLICY, window, answerTokens, json } = command;
  const isConversation = command.layout === "conversation";
  for (const [option, value] of Object.entries({ window, "answer-tokens": answerTokens })) {
    if (value !== undefined && !isConversation) throw new EvaluationError(`--${option}: needs --layout conversation`);
  }
  const trace = readTrace(readJson(command.trace));
  noteShortRetrievals(trace, command, note);
  if (window !== undefined) {
    const arms = await windowArms(trace, window, command);
    if (json) return print(JSON.stringify({ policy, k, window, arms }));
    const client = window === 1 ? "its last message" : `its last ${window} messages`;
    return print(`${windowTable(arms)}\n\nThe client sends ${client}. ${READING}`);
  }
  const replayWith = (name: PolicyName, retention?: RetentionName) => replay(trace, name, command, retention);
  if (json) return print(JSON.stringify({ policy, k, ...replayWith(policy) }));
  if (isConversation) {
    const rows = RETENTION_NAMES.map((name) => [name, ...totalsCells(replayWith(policy, name).totals)]);
    return print(`${alignedTable(["retention", ...TOTALS], rows)}\n\nOrdered by ${policy}. ${SAME_FOR_ALL_POLICIES}`);
  }
  const names = command.policy === undefined ? POLICY_NAMES : [policy];
  print(policyTable(names.map((name) => ({ name, replayed: replayWith(name) }))));
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
    { k, policy: ORDERING_POLICIES[policy], budgetRatio, layout, retention, limit, answer: answerIn(command) },
  );
}

function windowArms(trace: RecordedTrace, window: number, command: ReplayCommand): Promise<ReplayedWindow[]> {
  const { k, policy = DEFAULT_POLICY, budgetRatio = null, limit, cache, capacity } = command;
  const histories = WINDOW_HISTORIES;
  return replayWindows(
    trace,
    { k, policy, budgetRatio, window, histories, historyRatio: null, limit, answer: answerIn(command) },
    {
      tokens: { encode: encodeO200k, countTokens: countO200k },
      newCache: () => new SimulatedCache(cache, { capacityTokens: capacity }),
      openMemprefix: (now) => openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], now),
    },
  );
}

function answerIn({ answerTokens }: ReplayCommand): string | undefined {
  return answerTokens === undefined ? undefined : answerOf(answerTokens);
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

const READING =
  "Tokens per request; `size`: prompt tokens, and `fewer`: tokens to prefill, compared with memories in the last message.";

const BY_HAND: Partial<Record<WindowArm, string>> = {
  readme: "memories in the system prompt",
  "last-message": "memories in the last message",
};

function windowTable(arms: readonly ReplayedWindow[]): string {
  const byHand = arms.find(({ arm }) => arm === "last-message")?.totals;
  const rows = arms.map(({ arm, totals }) => [
    BY_HAND[arm] ?? arm,
    ...totalsCells(totals),
    ratioCell(totals.promptTokens, byHand?.promptTokens ?? 0, 2),
    ratioCell(byHand?.uncachedTokens ?? 0, totals.uncachedTokens, 2),
  ]);
  return alignedTable(["messages", ...TOTALS, "size", "fewer"], rows);
}

function totalsCells(totals: Omit<ReplayTotals, "prefilledMemoryTokens" | "largestSentRatio">): string[] {
  const tokens = [totals.promptTokens, totals.cachedTokens, totals.uncachedTokens];
  return [
    ratioCell(totals.memoryTokens, totals.retrievedTokens),
    ratioCell(totals.evidenceInPrompt, totals.evidence),
    ...tokens.map((sum) => Math.round(sum / totals.requests).toLocaleString("en")),
  ];
}

/** A part of a whole; `-` for an empty whole. */
function ratioCell(part: number, whole: number, digits = 3): string {
  return whole === 0 ? "-" : (part / whole).toFixed(digits);
}

/** A search may find fewer than k memories, so a short list is valid. */
function noteShortRetrievals(trace: RecordedTrace, { k, limit }: ReplayCommand, note: (line: string) => void): void {
  const lengths = trace.questions.slice(0, limit).map(({ retrieved }) => retrieved.length);
  const short = lengths.filter((length) => length < k).length;
  if (short === 0) return;
  const which =
    short === lengths.length
      ? `every question of the trace has fewer, ${largest(lengths)} at most`
      : `${short} of ${lengths.length} questions have fewer`;
  note(`--k: ${k} memories per question: ${which}`);
}
