/**
 * `npm run bench:long`: a conversation of 3,000 turns (or `TURNS`) with `max_prompt_tokens` 8,000, in-process on a file: median ms of a
 * compose around turns 30 and 3,000, for three clients. Floor: a turn's compose reads its epoch, whatever came before it; a client that sends
 * everything has everything read and digested. Expected: the first two equal, the last in proportion to what it sends.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countO200k } from "../src/cli/o200k.js";
import type { ChatMessage } from "../src/core/index.js";
import { readComposeOptions } from "../src/service/compose/compose-request.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { median } from "./median.js";
import { seeded } from "./seeded.js";

const TURNS = Number(process.env["TURNS"] ?? 3_000);
const AROUND = 15;
const LIMIT = 8_000;
const ANSWER = "It is as it was said to be, and so it was done. ".repeat(10);
const CLIENTS = {
  "the last 20 messages": { send: (said: readonly ChatMessage[]) => said.slice(-20), history: "auto" },
  "only what is new": { send: (said: readonly ChatMessage[]) => said.slice(-2), history: "stored" },
  everything: { send: (said: readonly ChatMessage[]) => said, history: "auto" },
} as const;

const folder = mkdtempSync(join(tmpdir(), "memstem-long-"));
console.log("| the client sends | longest prompt, tokens | epochs | ms, turn 30 | ms, last turns | ratio |");
console.log("| --- | --: | --: | --: | --: | --: |");
for (const [name, { send, history }] of Object.entries(CLIENTS)) {
  const service = openService({ countTokens: countO200k, file: join(folder, `${history}${name.length}.db`) });
  const random = seeded(1);
  const said: ChatMessage[] = [];
  const times: number[] = [];
  let [longest, epochs] = [0, 1];
  for (let turn = 0; turn < TURNS; turn++) {
    said.push({ role: "user", content: `Question ${turn}: where was it, and who had it then?` });
    const near = Math.floor(random() * 280);
    const memories = Array.from({ length: 20 }, (_, at) => {
      const id = (near + at * (1 + Math.floor(random() * 3))) % 300;
      return { id: `m${id}`, memory: `On day ${id} Ana told that thing ${id * 7} lies in the ${id * 3}th drawer.` };
    });
    const options = {
      userId: "ana",
      conversationId: "c",
      messages: send(said),
      memories,
      history,
      maxPromptTokens: LIMIT,
    };
    const start = performance.now();
    const { plan } = await service.compose(readComposeOptions(options));
    times.push(performance.now() - start);
    longest = Math.max(longest, plan.totalTokens);
    if (plan.epoch !== undefined && plan.epoch.began !== null) epochs++;
    said.push({ role: "assistant", content: ANSWER });
  }
  const [early, late] = [median(times.slice(30 - AROUND, 30 + AROUND)), median(times.slice(-2 * AROUND))];
  const row = [name, longest, epochs, early.toFixed(2), late.toFixed(2), (late / early).toFixed(2)];
  console.log(`| ${row.join(" | ")} |`);
  await service.close();
}
rmSync(folder, { recursive: true, force: true });
