/**
 * `npm run bench -- compose`: composing in-process, durable commit included, for users with 150 earlier requests.
 *
 * Floor, written down before measuring: a compose at k = 20 has to write one turn, one request (some 50 bytes per memory), one to three
 * index nodes and the counters, in one transaction without fsync: four to six row writes, some 20 µs each through drizzle, plus one
 * WAL append. At k = 100 the request row alone is some 5 KiB of JSON, made and written. The in-memory variant shows what the file costs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countO200k } from "../src/cli/o200k.js";
import type { ConversationId, MemoryId, UserId } from "../src/core/index.js";
import { composeRequest } from "../src/service/compose/compose-request.js";
import { openService } from "../test/service/compose/service-fixture.js";
import { seeded } from "./seeded.js";
import { quantile } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const EARLIER = 150;
const MEASURED = 50;
const USERS = 12;
const KNOWN_MEMORIES = 400;

const memories = Array.from({ length: KNOWN_MEMORIES }, (_, n) => ({
  id: `memory-${n.toString().padStart(30, "0")}` as MemoryId,
  text: `Fact ${n}: on day ${n % 31} the user told a friend that ${n * 7} small things had changed since spring, and why that was so.`,
}));

/** k distinct memories, popular ones more often (Zipf, exponent 0.8). */
function retrieve(k: number, random: () => number) {
  const drawn = memories.map((memory, rank) => ({ memory, key: random() ** ((rank + 1) ** 0.8) }));
  return drawn
    .sort((a, b) => b.key - a.key)
    .slice(0, k)
    .map(({ memory }) => memory);
}

async function measure(directory: string | null, k: number, layout: "single" | "conversation"): Promise<number[]> {
  const memprefix = openService({
    ...(directory !== null && { directory }),
    countTokens: countO200k,
    now: Date.now,
  });
  const random = seeded(k);
  const times: number[] = [];
  for (let user = 0; user < USERS; user++) {
    const history: { role: "user" | "assistant"; content: string }[] = [];
    for (let turn = 0; turn < EARLIER + MEASURED; turn++) {
      const question = { role: "user" as const, content: `Question ${turn}: what changed on day ${turn % 31}?` };
      const request = composeRequest({
        userId: `user-${user}` as UserId,
        conversationId: layout === "conversation" ? ("conversation" as ConversationId) : null,
        messages: layout === "conversation" ? [...history, question] : [question],
        memories: retrieve(k, random),
        system: "Answer from what you remember about the user.",
      });
      const start = performance.now();
      await memprefix.compose(request);
      if (turn >= EARLIER) times.push(performance.now() - start);
      history.push(question, { role: "assistant", content: `Answer ${turn}.` });
    }
  }
  await memprefix.close();
  return times;
}

const directory = mkdtempSync(join(tmpdir(), "memprefix-bench-"));
try {
  console.log(`compose in-process, ms; users with ${EARLIER} earlier requests; ${USERS * MEASURED} composes per row`);
  printHead(["layout", "k", "store", "p50", "p99"]);
  await measure(null, 20, "single");
  for (const layout of ["single", "conversation"] as const) {
    for (const k of [20, 100]) {
      for (const store of ["file", "in memory"]) {
        const times = await measure(store === "file" ? join(directory, `${layout}-${k}`) : null, k, layout);
        printRow([layout, k, store, ...[0.5, 0.99].map((share) => quantile(times, share).toFixed(2))]);
      }
    }
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
