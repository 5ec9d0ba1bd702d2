import { SimulatedCache } from "../core/cache/simulated-cache.js";
import type { HistoryName } from "../core/conversation/epoch.js";
import { DEFAULT_ENGINE_MODEL, DEFAULT_POLICY, ENGINE_MODELS, type PolicyName } from "../core/index.js";
import { alignedTable } from "../eval/base/aligned-table.js";
import type { RecordedTrace } from "../eval/replay/recorded-trace.js";
import { type ReplayedWindow, replayWindows, type WindowArm } from "../eval/run/replay-windows.js";
import { openMeasuredMemprefix } from "./assemble.js";
import { countO200k, encodeO200k } from "./o200k.js";
import { WINDOW_HISTORIES } from "./option-values.js";
import { ratioCell, totalsCells } from "./replay-cells.js";

export interface WindowCommand {
  readonly k: number;
  readonly policy?: PolicyName;
  readonly budgetRatio?: number;
  readonly cache: "radix" | "blocks";
  /** Of the simulated cache; absent: unlimited. */
  readonly capacity?: number;
  readonly limit?: number;
  readonly json?: boolean;
  readonly history?: readonly HistoryName[];
  readonly historyRatio?: number;
  /** The answer to every question; undefined: the recorded answers. */
  readonly answer: string | undefined;
}

/** Replays a trace as a conversation whose client sends its last `window` messages. Returns a table, or JSON of every request. */
export async function replayWindow(trace: RecordedTrace, window: number, command: WindowCommand): Promise<string> {
  const { k, budgetRatio = null, historyRatio = null, answer, limit } = command;
  const policy = command.policy ?? DEFAULT_POLICY;
  const histories = command.history ?? WINDOW_HISTORIES;
  const replay = { k, policy, budgetRatio, window, histories, historyRatio };
  const arms = await replayWindows(
    trace,
    { ...replay, answer, limit },
    {
      tokens: { encode: encodeO200k, countTokens: countO200k },
      newCache: () => new SimulatedCache(command.cache, { capacityTokens: command.capacity }),
      openMemprefix: (now) => openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], now),
    },
  );
  if (command.json) return JSON.stringify({ policy, k, window, historyRatio, arms });
  const client = window === 1 ? "its last message" : `its last ${window} messages`;
  return `${windowTable(arms)}\n\nThe client sends ${client}. ${READING}`;
}

const READING =
  "Tokens per request; `size`: prompt tokens, and `fewer`: tokens to prefill, compared with memories in the last message.";

const HEAD = ["messages", "memory sent", "evidence", "prompt", "cached", "to prefill", "size", "fewer"];

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
  return alignedTable(HEAD, rows);
}
