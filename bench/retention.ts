/**
 * `npm run bench:retention`: what a conversation of 150 turns costs under each retention, over recorded real Mem0 searches of LoCoMo
 * questions; means over the six conversations, prompts through an endless token-exact cache that keeps what the engine generated too.
 * Needs `../shared/data`.
 *
 * `system` is what memories in the system prompt come to (Mem0's README): the whole prompt is computed each turn, less what happens to
 * begin the same. `auto ÷ best` compares with the cheapest fixed retention of the cell.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import {
  ENGINE_MODELS,
  type EngineModel,
  FIXED_RETENTIONS,
  ORDERING_POLICIES,
  promptCost,
  RETENTION_NAMES,
  type RetentionName,
} from "../src/core/index.js";
import { type RecordedTrace, readTrace } from "../src/eval/recorded-trace.js";
import { type ReplayedRequest, replayTrace } from "../src/eval/replay-trace.js";
import { chatTokenizer } from "../src/simulator/chat-tokens.js";
import { simulatedCache } from "../src/simulator/simulated-cache.js";
import { RECORDED_CONVERSATIONS } from "../test/eval/recorded-searches.js";

const TURNS = Number(process.env["TURNS"] ?? 150);
const shared = fileURLToPath(new URL("../../shared/data/traces/", import.meta.url));
if (!existsSync(shared)) {
  console.error("needs the recorded searches, which are not here");
  process.exit(1);
}
const traces = RECORDED_CONVERSATIONS.map((name) =>
  readTrace(JSON.parse(readFileSync(`${shared}${name}.json`, "utf8"))),
);

/** Block-free, so that the law alone decides. */
const bare = (model: EngineModel): EngineModel => ({ ...model, blockTokens: 1, minimumPrefixTokens: 1 });
const COSTS = { cpu: bare(ENGINE_MODELS.cpu), gpu: bare(ENGINE_MODELS.gpu), hosted: bare(ENGINE_MODELS.hosted) };

type Served = Pick<ReplayedRequest, "promptTokens" | "cachedTokens">;

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const costOf = (requests: readonly Served[], engine: EngineModel) =>
  mean(requests.map(({ promptTokens, cachedTokens }) => promptCost(engine, promptTokens, cachedTokens)));

function replayed(trace: RecordedTrace, k: number, answer: string, retention: RetentionName, engine: EngineModel) {
  return replayTrace(
    trace,
    simulatedCache("radix"),
    { encode: encodeO200k, countTokens: countO200k },
    {
      k,
      policy: ORDERING_POLICIES["prefix-exact"],
      budgetRatio: null,
      layout: "conversation",
      limit: TURNS,
      retention,
      engine,
      answer,
    },
  ).requests;
}

/** Mem0's README: the memories as a list in the system prompt, then the plain history. */
function inSystemPrompt(trace: RecordedTrace, k: number, answer: string): Served[] {
  const cache = simulatedCache("radix");
  const tokenize = chatTokenizer(encodeO200k);
  const history: { role: string; content: string }[] = [];
  return trace.questions.slice(0, TURNS).map(({ question, retrieved }) => {
    const list = retrieved.slice(0, k).map((at) => `- ${trace.memories[at]?.memory ?? ""}`);
    const system = `You are a helpful AI. Answer the question based on query and memories.\nUser Memories:\n${list.join("\n")}`;
    const messages = [{ role: "system", content: system }, ...history, { role: "user", content: question }];
    const tokens = tokenize(messages);
    const { cachedTokens } = cache.serve({ tokens }, 0);
    history.push({ role: "user", content: question }, { role: "assistant", content: answer });
    cache.serve({ tokens: tokenize([...messages, { role: "assistant", content: answer }]) }, 0);
    return { promptTokens: tokens.length, cachedTokens };
  });
}

const figure = (value: number) => value.toPrecision(4);
console.log(
  `| k | answer | engine | ${RETENTION_NAMES.join(" | ")} | system | auto ÷ best | worst conversation | uncached: keep ÷ system |`,
);
console.log("| --: | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: |");
for (const k of [20, 100]) {
  for (const words of [8, 200]) {
    const answer = " yes".repeat(words).trimStart();
    const fixed = FIXED_RETENTIONS.map((retention) =>
      traces.map((trace) => replayed(trace, k, answer, retention, COSTS.gpu)),
    );
    const system = traces.map((trace) => inSystemPrompt(trace, k, answer));
    const uncached = (requests: readonly Served[]) =>
      mean(requests.map(({ promptTokens, cachedTokens }) => promptTokens - cachedTokens));
    const share = mean((fixed[0] ?? []).map(uncached)) / mean(system.map(uncached));
    for (const [name, engine] of Object.entries(COSTS)) {
      const auto = traces.map((trace) => costOf(replayed(trace, k, answer, "auto", engine), engine));
      const costs = fixed.map((byTrace) => byTrace.map((requests) => costOf(requests, engine)));
      const best = Math.min(...costs.map(mean));
      const worst = Math.max(
        ...auto.map((cost, at) => cost / Math.min(...costs.map((byTrace) => byTrace[at] ?? Number.NaN))),
      );
      const cells = [...costs.map(mean), mean(auto), mean(system.map((requests) => costOf(requests, engine)))];
      console.log(
        `| ${k} | ${words} | ${name} | ${cells.map(figure).join(" | ")} | ${(mean(auto) / best).toFixed(3)} | ${worst.toFixed(3)} | ${(100 * share).toFixed(2)} % |`,
      );
    }
  }
}
