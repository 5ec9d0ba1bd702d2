/**
 * `npm run bench:warm-up`: from a chat request to its first token, with a memory search that takes its time, with and without
 * `MEMSTEM_WARM_UP`. The engine inside with a random 23M model; every prompt has instructions of its own, so that its beginning is cold.
 *
 * `SEARCH_MS=1000`, `HEAD_WORDS=1000`, `ROUNDS=7`, `THREADS` (the machine's cores).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { countO200k } from "../src/cli/o200k.js";
import type { UserId } from "../src/core/index.js";
import { ENGINES } from "../src/engines/adapters/engines.js";
import { openEmbeddedEngine } from "../src/engines/embedded/embedded-engine.js";
import { openAiUpstream } from "../src/engines/embedded/embedded-openai.js";
import { embeddedUpstream } from "../src/engines/embedded/embedded-upstream.js";
import { MODEL_SHAPES, writeRandomModel } from "../src/engines/random-model/random-model.js";
import { Chat } from "../src/service/chat/chat.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { found, openService, searchingSource } from "../test/service/compose/service-fixture.js";
import { median } from "./median.js";

const searchMs = Number(process.env["SEARCH_MS"] ?? 1_000);
const words = Number(process.env["HEAD_WORDS"] ?? 1_000);
const rounds = Number(process.env["ROUNDS"] ?? 7);
const threads = process.env["THREADS"] === undefined ? undefined : Number(process.env["THREADS"]);
const userId = "ana" as UserId;

const folder = mkdtempSync(join(tmpdir(), "memstem-warm-up-"));
const modelPath = join(folder, "23m.gguf");
try {
  await writeRandomModel(modelPath, { name: "23m", shape: MODEL_SHAPES["23m"] });
  const engine = await openEmbeddedEngine({ modelPath, slots: 4, contextTokens: 4_096, threads });
  const memories = found({ tea: "Ana drinks green tea.", city: "Ana lives in Lisbon." });
  const source = searchingSource(async () => {
    await setTimeout(searchMs);
    return memories;
  });
  const arms = [false, true].map((warmUp) => {
    const memstem = openService({ source, countTokens: countO200k, now: Date.now });
    const upstream = embeddedUpstream(openAiUpstream(engine));
    const { readUsage } = ENGINES.vllm;
    const parts = { upstream, readUsage, writeBack: false, warmUp, memstem, onFault: console.error };
    return {
      warmUp,
      times: [] as number[],
      cached: [] as number[],
      memstem,
      chat: new Chat({ ...parts, clock: () => performance.now() }),
    };
  });
  for (let round = 0; round < rounds; round++) {
    for (const { warmUp, times, cached, chat, memstem } of round % 2 === 0 ? arms : arms.toReversed()) {
      const system = `${warmUp ? "Warm" : "Cold"} ${round}: ${"be kind and brief ".repeat(words / 4)}`;
      const messages = [
        { role: "system", content: system },
        { role: "user", content: "What does she drink?" },
      ];
      const started = performance.now();
      const compose = readComposeOptions({ userId, messages });
      const body = { model: "any", messages, max_tokens: 1 };
      const request = { userId, agentId: null, compose, body, query: "", headers: [], writeBack: null };
      const { usage, body: answer } = await chat.complete(memstem.chats, request, new AbortController().signal);
      for await (const _ of answer);
      times.push(performance.now() - started);
      cached.push(usage?.cachedTokens ?? Number.NaN);
    }
  }
  console.log(`search ${searchMs} ms, instructions of ${words} words, median of ${rounds}\n`);
  console.log(
    "| warm-up | answer of one token after, ms | behind the search, ms | cached tokens |\n| --- | --: | --: | --: |",
  );
  for (const { warmUp, times, cached } of arms) {
    const all = median(times);
    console.log(
      `| ${warmUp ? "on" : "off"} | ${all.toFixed(0)} | ${(all - searchMs).toFixed(0)} | ${median(cached)} |`,
    );
  }
  await Promise.all(arms.map(({ memstem }) => memstem.close()));
  await engine.close();
} finally {
  rmSync(folder, { recursive: true });
}
