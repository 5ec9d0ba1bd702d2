/**
 * `npm run bench:batch-http`: 10,000 requests of 60 users in one batch over HTTP, k = 20, from recorded real Mem0 searches: how long, when
 * the first answer came, the most memory that the service took, and what another user's single requests waited meanwhile. The service
 * is a process of its own. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * Floor of memory: one window's requests and their plan; of a JSON document the document too.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { listeningChild } from "./child-process.js";
import { neededData } from "./recorded-data.js";

const REQUESTS = 10_000;
const USERS = 60;
const K = 20;
const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
const requests = Array.from({ length: REQUESTS }, (_, n) => {
  const trace = traces[n % traces.length];
  const question = trace?.questions[Math.floor(n / USERS) % trace.questions.length];
  const memories = (question?.retrieved ?? []).slice(0, K);
  return {
    user_id: `user-${n % USERS}`,
    query: question?.question,
    memories: memories.map((at) => ({ id: String(at), memory: trace?.memories[at]?.memory })),
  };
});

async function measure(type: string, body: string): Promise<string[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "memstem-bench-"));
  const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
  const environment = {
    MEMSTEM_PORT: "0",
    MEMSTEM_SOURCE: "none",
    MEMSTEM_LOG_LEVEL: "silent",
    MEMSTEM_DATA_DIR: dataDir,
  };
  const { address, child, stop } = await listeningChild([main, "serve"], environment);
  const waits: number[] = [];
  let isDone = false;
  const others = (async () => {
    while (!isDone) {
      const start = performance.now();
      const single = JSON.stringify({ user_id: "other", query: "?", memories: [{ id: "1", memory: "One thing." }] });
      await (
        await fetch(`${address}/compose`, {
          method: "POST",
          body: single,
          headers: { "content-type": "application/json" },
        })
      ).text();
      waits.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  const start = performance.now();
  let first = 0;
  const answer = await fetch(`${address}/compose/batch`, { method: "POST", body, headers: { "content-type": type } });
  for await (const _chunk of answer.body ?? []) first ||= performance.now() - start;
  const seconds = (performance.now() - start) / 1_000;
  isDone = true;
  await others;
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
  await stop();
  rmSync(dataDir, { recursive: true });
  waits.sort((a, b) => a - b);
  return [
    type,
    (body.length / 1e6).toFixed(0),
    seconds.toFixed(1),
    (first / 1_000).toFixed(1),
    (Number(peak) / 1_024).toFixed(0),
    (waits[waits.length >> 1] ?? 0).toFixed(0),
    (waits.at(-1) ?? 0).toFixed(0),
  ];
}

console.log(
  "| 10,000 requests, k = 20 | MB in | s | first answer, s | peak RSS, MiB | others wait, median ms | worst, ms |",
);
console.log("| --- | --: | --: | --: | --: | --: | --: |");
const lines = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
console.log(`| ${(await measure("application/x-ndjson", lines)).join(" | ")} |`);
console.log(`| ${(await measure("application/json", JSON.stringify({ requests }))).join(" | ")} |`);
