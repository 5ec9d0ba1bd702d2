/**
 * `npm run bench -- retention`: what a turn of a conversation costs under each retention, over recorded real Mem0 searches of LoCoMo
 * questions (first 150 of each conversation, or `TURNS`); means over the six conversations, prompts through an endless token-exact cache
 * that keeps what the engine generated too. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * `system` is what memories in the system prompt come to (Mem0's README). `auto ÷ best` compares with the cheapest fixed retention of the
 * cell. Floor of what `keep` computes per turn: the question, what was never retrieved before, and one line that points at the rest.
 *
 * `CLIENTS=4` (default: none): instead, what a prompt costs in the first turns of so many conversations in turn while memprefix still learns the
 * engine's law, answers' pace included; `TURNS=14`.
 *
 * `DEAR=1` (default: none): instead, an engine whose attention is dear, and dearer the longer prompts are: measured times of vLLM in float32 on a
 * CPU, replayed; `TURNS=30`, `K=20,40` (at 40 the recorded lists have as many tokens as the measured ones).
 */
import { FIXED_RETENTIONS } from "../src/core/index.js";
import { costsOfDearAttention } from "./dear-attention.js";
import { costsWhileLearning } from "./learned-costs.js";
import { neededTraces } from "./recorded-data.js";
import { costs, LAWS, servedByHand, servedFixed, servedWith, uncached } from "./retention-costs.js";
import { mean } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const isDear = process.env["DEAR"] === "1";
const turns = Number(process.env["TURNS"] ?? (isDear ? 30 : 150));
const traces = neededTraces();

const clients = Number(process.env["CLIENTS"] ?? 0);

if (isDear) {
  for (const k of (process.env["K"] ?? "20,40").split(",").map(Number)) costsOfDearAttention({ traces, turns, k });
} else if (clients > 0) costsWhileLearning({ traces, turns, clients });
else costsOfRetentions();

function costsOfRetentions(): void {
  const ratios = ["auto ÷ best", "worst conversation", "uncached: keep ÷ system"];
  printHead(["k", "answer", "engine", ...FIXED_RETENTIONS, "auto", "system", ...ratios]);
  for (const k of [20, 100]) {
    for (const answerTokens of [8, 200]) {
      const conversations = { traces, k, answerTokens, turns };
      const fixed = servedFixed(conversations);
      const system = servedByHand(conversations);
      const share = uncached(fixed[FIXED_RETENTIONS.indexOf("keep")] ?? []) / uncached(system);
      for (const [name, engine] of Object.entries(LAWS)) {
        const auto = costs(servedWith(conversations, { retention: "auto", engine }), engine);
        const byRetention = fixed.map((served) => costs(served, engine));
        const best = Math.min(...byRetention.map(mean));
        const worst = auto.map((cost, at) => cost / Math.min(...byRetention.map((of) => of[at] ?? Number.NaN)));
        const cells = [...byRetention, auto, costs(system, engine)].map((of) => mean(of).toPrecision(4));
        const ratios = [(mean(auto) / best).toFixed(3), Math.max(...worst).toFixed(3), `${(100 * share).toFixed(2)} %`];
        printRow([k, answerTokens, name, ...cells, ...ratios]);
      }
    }
  }
}
