/**
 * `npm run bench:engine`: the time to the first token on the engine inside, by how much of the prompt is cached.
 *
 * A random 23-million-parameter model (what weights say changes no time), one slot, prompts of about 2,000 tokens. Each measurement
 * first fills the slot with a prompt that shares the wanted part of its beginning, then asks; the shares take turns within every round,
 * so that whatever else the machine does meets all of them. Medians; `reported` must be what was really shared. Expected before
 * measuring, from an earlier fit of a·u + b·u·(c + u/2) with u uncached and c cached tokens: 75 % cached costs a third of cold.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { openEmbeddedEngine } from "../src/engines/embedded/embedded-engine.js";
import type { GenerationUsage } from "../src/engines/embedded/generation.js";
import { MODEL_SHAPES, writeRandomModel } from "../src/engines/random-model/random-model.js";
import { median } from "./median.js";
import { seeded } from "./seeded.js";

const PROMPT_TOKENS = 2_000;
const SHARES = [0, 0.75, 0.9, 0.99];
const ROUNDS = Number(process.env["ROUNDS"] ?? 7);
const THREADS = Number(process.env["THREADS"] ?? Math.min(2, availableParallelism()));
/** Each is one token of GPT-2's vocabulary with the space before it, so that a prompt's tokens can be counted off. */
const WORDS = [
  "time",
  "house",
  "water",
  "music",
  "light",
  "paper",
  "river",
  "stone",
  "garden",
  "winter",
  "friend",
  "story",
];

const folder = mkdtempSync(join(tmpdir(), "memstem-bench-"));
const random = seeded(7);
const words = (count: number) =>
  Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(" ");

try {
  const modelPath = join(folder, "23m.gguf");
  const writing = performance.now();
  const { bytes } = await writeRandomModel(modelPath, { name: "23m", shape: MODEL_SHAPES["23m"] });
  const written = performance.now() - writing;
  const engine = await openEmbeddedEngine({ modelPath, slots: 1, contextTokens: 4_096, threads: THREADS });
  const ask = async (content: string): Promise<GenerationUsage> => {
    for await (const event of engine.generate({ messages: [{ role: "user", content }], maxTokens: 1 })) {
      if (event.kind === "end") return event.usage;
    }
    throw new Error("the answer has no end");
  };
  await ask(words(PROMPT_TOKENS)); // warm-up: the file is read, memory is there
  const times = new Map<number, { ttft: number[]; cached: number[]; prompt: number[] }>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const share of round % 2 === 0 ? SHARES : SHARES.toReversed()) {
      const shared = Math.round(PROMPT_TOKENS * share);
      const beginning = words(shared);
      // What comes after the shared beginning differs in its first word already.
      await ask(`${beginning} left ${words(PROMPT_TOKENS - shared)}`);
      const usage = await ask(`${beginning} right ${words(PROMPT_TOKENS - shared)}`);
      const seen = times.get(share) ?? { ttft: [], cached: [], prompt: [] };
      seen.ttft.push(usage.ttftMs ?? Number.NaN);
      seen.cached.push(usage.cachedTokens);
      seen.prompt.push(usage.promptTokens);
      times.set(share, seen);
    }
  }
  await engine.close();

  process.stdout.write(`model: ${Math.round(bytes / 1e6)} MB, written in ${(written / 1_000).toFixed(1)} s\n`);
  process.stdout.write(`${THREADS} threads, ${ROUNDS} rounds, load average ${loadavg()[0]?.toFixed(1)}\n\n`);
  process.stdout.write(
    "| shared | prompt tokens | reported cached | TTFT, ms | of cold |\n| --: | --: | --: | --: | --: |\n",
  );
  const cold = median(times.get(0)?.ttft ?? []);
  for (const share of SHARES) {
    const { ttft = [], cached = [], prompt = [] } = times.get(share) ?? {};
    // The template's own tokens before the message are shared as well, and the space before a word belongs to it.
    const overhead = Math.max(...cached.map((tokens) => Math.abs(tokens - Math.round(PROMPT_TOKENS * share))));
    if (overhead > 8) throw new Error(`${overhead} tokens are between what was shared and what was reported`);
    const row = [
      `${share * 100} %`,
      median(prompt),
      median(cached),
      Math.round(median(ttft)),
      (median(ttft) / cold).toFixed(3),
    ];
    process.stdout.write(`| ${row.join(" | ")} |\n`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
