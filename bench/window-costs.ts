import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { DEFAULT_HISTORY_RATIO, ENGINE_MODELS, type EngineModel, promptCost } from "../src/core/index.js";
import { answerOf } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import {
  hasRatio,
  type ReplayedWindow,
  replayWindows,
  WINDOW_HISTORIES,
  type WindowArm,
} from "../src/eval/run/replay-windows.js";
import { LAWS } from "../test/eval/replay/retention-costs.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const ks = (process.env["K"] ?? "20,100").split(",").map(Number);
const ratios = (process.env["RATIOS"] ?? "2,3").split(",").map(Number);

const ENGINES: Readonly<Record<string, EngineModel>> = {
  ...LAWS,
  "hosted-writes": { ...ENGINE_MODELS["hosted-writes"], blockTokens: 1, minimumPrefixTokens: 1 },
};

/** Prints what a turn costs whose client sends a window. */
export async function costsOfWindows({
  traces,
  turns,
  windows,
}: {
  readonly traces: readonly RecordedTrace[];
  readonly turns: number;
  readonly windows: readonly number[];
}): Promise<void> {
  const names = ["system", "last message", ...WINDOW_HISTORIES.flatMap((history) => armsOf(history))];
  printHead(["k", "window", "engine", ...names, "auto ÷ best"]);
  for (const k of ks) {
    for (const window of windows) {
      for (const [name, engine] of Object.entries(ENGINES)) {
        const costs = await costsOf(traces, { k, window, turns, engine });
        const best = Math.min(
          costs.get("exact") ?? Number.NaN,
          costs.get(`extended ${DEFAULT_HISTORY_RATIO}`) ?? Number.NaN,
        );
        const auto = (costs.get(`auto ${DEFAULT_HISTORY_RATIO}`) ?? Number.NaN) / best;
        const cells = names.map((arm) => costs.get(arm)?.toPrecision(4) ?? "–");
        printRow([k, window, name, ...cells, Number.isNaN(auto) ? "–" : auto.toFixed(3)]);
      }
    }
  }
}

/** Names of a history's arms. */
function armsOf(history: (typeof WINDOW_HISTORIES)[number]): string[] {
  return hasRatio(history) ? ratios.map((ratio) => `${history} ${ratio}`) : [history];
}

const BY_HAND = { readme: "system", "last-message": "last message" } as const;

/** Mean cost of a turn in every arm, over the conversations. */
async function costsOf(
  traces: readonly RecordedTrace[],
  { k, window, turns, engine }: { k: number; window: number; turns: number; engine: EngineModel },
): Promise<ReadonlyMap<string, number>> {
  const costs = new Map<string, number[]>();
  for (const trace of traces) {
    for (const [at, historyRatio] of ratios.entries()) {
      const arms = await replayWindows(
        trace,
        {
          k,
          policy: "prefix-exact",
          budgetRatio: null,
          window,
          // The others have no ratio.
          histories: WINDOW_HISTORIES.filter((history) => at === 0 || hasRatio(history)),
          historyRatio,
          answer: answerOf(120),
          limit: turns,
        },
        {
          tokens: { encode: encodeO200k, countTokens: countO200k },
          newCache: () => new SimulatedCache("radix"),
          openMemprefix: (now) => openMeasuredMemprefix(engine, now),
        },
      );
      for (const arm of arms) {
        if (at > 0 && isByHand(arm.arm)) continue;
        const name = nameOf(arm, historyRatio);
        costs.set(name, [...(costs.get(name) ?? []), costOf(arm, engine)]);
      }
    }
  }
  return new Map([...costs].map(([name, of]) => [name, mean(of)]));
}

function isByHand(arm: WindowArm): arm is keyof typeof BY_HAND {
  return arm in BY_HAND;
}

function nameOf({ arm }: ReplayedWindow, ratio: number): string {
  if (isByHand(arm)) return BY_HAND[arm];
  return hasRatio(arm) ? `${arm} ${ratio}` : arm;
}

function costOf({ requests }: ReplayedWindow, engine: EngineModel): number {
  return mean(requests.map(({ promptTokens, cachedTokens }) => promptCost(engine, promptTokens, cachedTokens)));
}
