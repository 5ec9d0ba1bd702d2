import { SimulatedCache } from "../core/cache/simulated-cache.js";
import {
  DEFAULT_POLICY,
  type Label,
  ORDERING_POLICIES,
  POLICY_NAMES,
  RETENTION_NAMES,
  type RetentionName,
  type ScopePolicy,
} from "../core/index.js";
import { largest } from "../core/text/collections.js";
import { alignedTable } from "../eval/base/aligned-table.js";
import { answerOf } from "../eval/base/hand-built.js";
import { EvaluationError, readJson } from "../eval/base/run-files.js";
import { type RecordedTrace, readPeerOrders, readTrace, recordedOrder } from "../eval/replay/recorded-trace.js";
import { RecordedBatch } from "../eval/replay/replay-batch.js";
import { composeTrace, type ReplayedTrace, type ReplayOptions, replayTrace } from "../eval/replay/replay-trace.js";
import { countO200k, encodeO200k } from "./o200k.js";
import { windowProblem } from "./option-values.js";
import { meanCell, ratioCell, totalsCells } from "./replay-cells.js";
import type { WindowCommand } from "./replay-windows.js";

export interface ReplayCommand extends Omit<WindowCommand, "answer"> {
  readonly trace: string;
  readonly layout: "single" | "conversation" | "batch";
  /** Tokens of every answer in a conversation's history; absent: the recorded answers. */
  readonly answerTokens?: number;
  /** Last messages that a conversation's client sends; absent: all. */
  readonly window?: number;
  readonly peer?: string;
}

const NOT_FOR_A_BATCH = [
  ["json", "--json"],
  ["peer", "--peer"],
  ["policy", "--policy"],
  ["budgetRatio", "--budget-ratio"],
] as const;

/**
 * Replays a trace: one policy as JSON, beside another system's recorded orders, or all policies as a table; for a conversation all retentions,
 * for a window all histories. `note` gets lines that are not part of the result. Throws {@link EvaluationError}.
 */
export async function runReplay(
  command: ReplayCommand,
  print: (line: string) => void,
  note: (line: string) => void,
): Promise<void> {
  const isConversation = command.layout === "conversation";
  const problem = windowProblem(command, isConversation);
  if (problem !== null) throw new EvaluationError(problem);
  if (command.answerTokens !== undefined && !isConversation)
    throw new EvaluationError("--answer-tokens: needs --layout conversation");
  const trace = readTrace(readJson(command.trace));
  noteShortRetrievals(limited(trace, command), command.k, note);
  if (command.layout === "batch") {
    for (const [option, name] of NOT_FOR_A_BATCH) {
      if (command[option] !== undefined) throw new EvaluationError(`${name}: does not apply to a batch`);
    }
    print(batchTable(limited(trace, command), command));
    return;
  }
  if (command.peer !== undefined && command.layout !== "single")
    throw new EvaluationError("--peer: its orders are of single requests");
  if (command.window !== undefined) {
    // Loaded on demand: it composes as the service does, and so imports the store.
    const { replayWindow } = await import("./replay-windows.js");
    print(await replayWindow(trace, command.window, { ...command, answer: answerIn(command) }));
    return;
  }
  const replayWith = (policy: ScopePolicy, retention?: RetentionName) => replay(trace, policy, command, retention);
  const peer = command.peer === undefined ? null : readPeerOrders(readJson(command.peer));
  const ofPeer = peer && { policy: peer.policy, ...replayWith(recordedOrder(trace, peer, command.k)) };
  if (command.json) {
    const policy = command.policy ?? DEFAULT_POLICY;
    const ofPolicy = { policy, k: command.k, ...replayWith(ORDERING_POLICIES[policy]) };
    print(JSON.stringify(ofPeer === null ? ofPolicy : { ...ofPolicy, peer: ofPeer }));
    return;
  }
  if (isConversation) {
    const policy = command.policy ?? DEFAULT_POLICY;
    const ofRetention = (name: RetentionName) => ({ name, replay: replayWith(ORDERING_POLICIES[policy], name) });
    print(conversationTable(RETENTION_NAMES.map(ofRetention)));
    print(`\nOrdered by ${policy}. ${SAME_FOR_ALL_POLICIES}`);
    return;
  }
  const rows = (command.policy === undefined ? POLICY_NAMES : [command.policy]).map((name) => ({
    name: name as string,
    replay: replayWith(ORDERING_POLICIES[name]),
  }));
  if (ofPeer !== null) rows.push({ name: `recorded ${ofPeer.policy}`, replay: ofPeer });
  print(table(rows));
}

function replay(
  trace: RecordedTrace,
  policy: ScopePolicy,
  command: ReplayCommand,
  retention?: RetentionName,
): ReplayedTrace {
  const options: ReplayOptions = {
    k: command.k,
    policy,
    budgetRatio: command.budgetRatio ?? null,
    layout: command.layout === "conversation" ? "conversation" : "single",
    retention,
    limit: command.limit,
    answer: answerIn(command),
  };
  const cache = new SimulatedCache(command.cache, { capacityTokens: command.capacity });
  return replayTrace(trace, cache, { encode: encodeO200k, countTokens: countO200k }, options);
}

function answerIn({ answerTokens }: ReplayCommand): string | undefined {
  return answerTokens === undefined ? undefined : answerOf(answerTokens);
}

interface ReplayRow {
  readonly name: string;
  readonly replay: ReplayedTrace;
}

const HEAD = [
  "policy",
  "memory hits",
  "prefilled",
  "memory sent",
  "at most",
  "evidence",
  "prompt",
  "cached",
  "to prefill",
];

/** Shares are of memory tokens retrieved; `at most`: the largest of a single prompt. The last three columns are tokens per request. */
function table(rows: readonly ReplayRow[]): string {
  const lines = rows.map((row) => {
    const { totals } = row.replay;
    const [name = "", sent = "", ...others] = conversationCells(row);
    return [
      name,
      ratioCell(totals.memoryTokens - totals.prefilledMemoryTokens, totals.memoryTokens),
      ratioCell(totals.prefilledMemoryTokens, totals.retrievedTokens),
      sent,
      totals.largestSentRatio?.toFixed(3) ?? "-",
      ...others,
    ];
  });
  return alignedTable(HEAD, lines);
}

const CONVERSATION_HEAD = ["retention", "memory sent", "evidence", "prompt", "cached", "to prefill"];
/** Printed in place of one row per policy, which would be equal. */
const SAME_FOR_ALL_POLICIES =
  "All policies have the same cache hits here: what a turn adds comes after everything cached.";

/** Without the two columns of blocks alone: in a conversation other text, which may change, is between them. */
function conversationTable(rows: readonly ReplayRow[]): string {
  return alignedTable(CONVERSATION_HEAD, rows.map(conversationCells));
}

function conversationCells({ name, replay: { totals } }: ReplayRow): string[] {
  return [name, ...totalsCells(totals)];
}

/** A search may find fewer than k memories, so a short list is valid. */
function noteShortRetrievals({ questions }: RecordedTrace, k: number, note: (line: string) => void): void {
  const short = questions.map(({ retrieved }) => retrieved.length).filter((length) => length < k);
  if (short.length === 0) return;
  const most = largest(questions.map(({ retrieved }) => retrieved.length));
  const all = short.length === questions.length;
  const which = all
    ? `every question of the trace has fewer, ${most} at most`
    : `${short.length} of ${questions.length} questions have fewer`;
  note(`--k: ${k} memories per question: ${which}`);
}

function limited(trace: RecordedTrace, { limit }: ReplayCommand): RecordedTrace {
  return { ...trace, questions: trace.questions.slice(0, limit) };
}

const BATCH_HEAD = ["order and schedule", "prompt", "cached", "to prefill", "hit ratio"];

/** All questions as one batch: every policy's orders in the original sequence, then the planners'. Tokens per request. */
function batchTable(trace: RecordedTrace, command: ReplayCommand): string {
  const batch = new RecordedBatch([trace], command.k, encodeO200k);
  const online = POLICY_NAMES.filter((name) => name !== "carry-over").map((name) => {
    const options: ReplayOptions = {
      k: command.k,
      policy: ORDERING_POLICIES[name],
      budgetRatio: null,
      layout: "single",
    };
    const prompts = composeTrace(trace, { encode: encodeO200k, countTokens: countO200k }, options);
    const executed = [...prompts].map(({ order }, request) => ({
      request,
      order: order.map((at) => (at + 1) as Label),
    }));
    return [`${name}, as they came`, executed] as const;
  });
  const { promptTokens, requests } = batch;
  const lines = [...online, ...batch.executedByPlanners()].map(([name, executed]) => {
    const cache = new SimulatedCache(command.cache, { capacityTokens: command.capacity });
    const ratio = batch.hitRatio(executed, cache);
    const cached = ratio * promptTokens;
    const tokens = [promptTokens, cached, promptTokens - cached];
    return [name, ...tokens.map((sum) => meanCell(sum, requests.length)), ratio.toFixed(3)];
  });
  return alignedTable(BATCH_HEAD, lines);
}
