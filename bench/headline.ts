/**
 * `npm run bench -- headline`: what README says of memprefix, with what it must be compared with. Recorded real Mem0 searches of six LoCoMo
 * conversations, first 150 questions each (or `TURNS`), through an endless token-exact cache that keeps answers too. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Every figure is a mean per prompt of one conversation; the table has the median of the six and, in brackets, the least and the most.
 * `billed`: what OpenAI bills for a prompt, in prices of one uncached token: u + 0.05·c from 1,024 tokens in steps of 128; `billed, with
 * writes`: 1.25·u + 0.05·c. `memories`: in the prompt, where each search returned k.
 *
 * Floor of what a conversation computes per turn: the question, the answer before it, and what was never retrieved before.
 */
import { pricedModel } from "../src/core/cost/prices.js";
import { ENGINE_MODELS, promptCost } from "../src/core/index.js";
import { answerOf, inLastMessage } from "../src/eval/base/hand-built.js";
import { neededTraces } from "./recorded-data.js";
import { replayWindows, type WindowArm } from "./replay-windows.js";
import { type Served, servedByHand, servedWith } from "./retention-costs.js";
import { mean, median } from "./statistics.js";
import { printHead, printRow, whole } from "./table.js";

const turns = Number(process.env["TURNS"] ?? 150);
const traces = neededTraces();

/** OpenAI's prices, before GPT-5.6 and since. */
const HOSTED = pricedModel({ host: null, family: "openai" }, null);
const WRITES_BILLED = pricedModel({ host: null, family: "openai-breakpoints" }, null);

type Measure = (prompt: Served) => number;
const uncached: Measure = ({ promptTokens, cachedTokens }) => promptTokens - cachedTokens;
const MEASURES: readonly (readonly [title: string, measure: Measure])[] = [
  ["prompt tokens", ({ promptTokens }) => promptTokens],
  ["to compute", uncached],
  ["billed", (prompt) => promptCost(HOSTED, prompt.promptTokens, prompt.cachedTokens)],
  ["billed, with writes", (prompt) => promptCost(WRITES_BILLED, prompt.promptTokens, prompt.cachedTokens)],
  ["memories", ({ order }) => order.length],
];

const twoDigits = (value: number) => value.toFixed(2);

/** Median over the conversations, least and most in brackets. */
function spread(values: readonly number[], format: (value: number) => string): string {
  return `${format(median(values))} (${format(Math.min(...values))} to ${format(Math.max(...values))})`;
}

function row(names: readonly string[], served: readonly (readonly Served[])[], rest: readonly string[]): void {
  const cells = MEASURES.map(([, measure]) =>
    spread(
      served.map((prompts) => mean(prompts.map(measure))),
      whole,
    ),
  );
  printRow([...names, ...cells, ...rest]);
}

const titles = MEASURES.map(([title]) => title);

console.log("Conversations\n");
printHead(["k", "answer", "memories are", ...titles, "in the last prompt"]);
for (const k of [20, 100]) {
  for (const answerTokens of [8, 200]) {
    const conversations = { traces, k, answerTokens, turns };
    const arms: readonly (readonly [name: string, served: readonly (readonly Served[])[]])[] = [
      ["in the system prompt (Mem0's README)", servedByHand(conversations)],
      ["in the last message, by hand", servedByHand(conversations, inLastMessage)],
      [
        "`auto`, the default, by a GPU's time",
        servedWith(conversations, { retention: "auto", engine: ENGINE_MODELS.gpu }),
      ],
      ["`auto`, the default, by OpenAI's prices", servedWith(conversations, { retention: "auto", engine: HOSTED })],
      [
        "in the last message (`ephemeral`)",
        servedWith(conversations, { retention: "ephemeral", engine: ENGINE_MODELS.gpu }),
      ],
      [
        "where they were first sent (`keep`)",
        servedWith(conversations, { retention: "keep", engine: ENGINE_MODELS.gpu }),
      ],
    ];
    for (const [name, served] of arms) {
      const last = served.map((prompts) => prompts.at(-1)?.order.length ?? 0);
      row([String(k), String(answerTokens), name], served, [spread(last, whole)]);
    }
  }
}

console.log("\nConversations whose client sends its last 20 messages, answers of 120 tokens\n");
printHead(["k", "memories are", ...titles]);
for (const k of [20, 100]) {
  const replay = { k, window: 20, cost: HOSTED, answer: answerOf(120), limit: turns };
  const served = new Map<WindowArm, (readonly Served[])[]>();
  for (const trace of traces) {
    const arms = await replayWindows(trace, ["exact", "auto"], replay);
    for (const [arm, prompts] of arms) served.set(arm, [...(served.get(arm) ?? []), prompts]);
  }
  for (const [arm, prompts] of served) row([String(k), arm], prompts, []);
}

console.log(
  "\nSingle prompts; ratios are tokens to compute ÷ those of Mem0's README: of all, and of the median question\n",
);
printHead(["k", "order", ...titles, "ratio", "median question"]);
for (const k of [20, 100]) {
  const singles = { traces, k, turns, answerTokens: null };
  const readme = servedByHand(singles);
  row([String(k), "Mem0's README"], readme, ["", ""]);
  for (const [name, composing] of [
    ["prefix-exact", { engine: ENGINE_MODELS.gpu }],
    ["prefix-exact, without the line", { engine: ENGINE_MODELS.gpu, annotations: false }],
    ["prefix-exact, by OpenAI's prices", { engine: HOSTED }],
    ["carry-over, 1.5×", { engine: ENGINE_MODELS.gpu, policy: "carry-over", budgetRatio: 1.5 }],
  ] as const) {
    const served = servedWith(singles, composing);
    const of = served.map((prompts, at) => mean(prompts.map(uncached)) / mean((readme[at] ?? []).map(uncached)));
    const middle = served.map((prompts, at) =>
      median(prompts.map((prompt, turn) => uncached(prompt) / uncached(readme[at]?.[turn] ?? prompt))),
    );
    row([String(k), name], served, [spread(of, twoDigits), spread(middle, twoDigits)]);
  }
}
