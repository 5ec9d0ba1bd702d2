/**
 * `npm run bench -- papers overlap`: what the searches of one user have in common, over recorded real Mem0 searches of LoCoMo questions (first 150 of each
 * conversation); medians over the conversations with the least and the most. Shares of the blocks that searches return. Beside the papers'
 * figures in docs/papers.md. Takes `--data FOLDER` (`recorded-data.ts`).
 *
 * Floor of `aligned`: 0. Ceiling of `aligned`, whatever the order: `nearest`.
 */
import { openMeasuredMemprefix } from "../src/cli/assemble.js";
import { DEFAULT_ENGINE_MODEL, ENGINE_MODELS, type MemoryId, type UserId } from "../src/core/index.js";
import { composeRequest } from "../src/service/compose/compose-request.js";
import { overlapShares, sharedInSession, sharedWords, shareOfMostReturned } from "./overlap-shares.js";
import { neededTraces } from "./recorded-data.js";
import { median } from "./statistics.js";
import { printHead, printRow } from "./table.js";

/** First so many questions of each: behind them LoCoMo asks many again, of the other speaker. */
const LIMIT = 150;
/** Turns of a session; MT-RAG's conversations have 7.7 on average. */
const SESSION_TURNS = 8;

const traces = neededTraces();

function spread(shares: readonly number[]): string {
  const [middle, least, most] = [median(shares), Math.min(...shares), Math.max(...shares)];
  const percent = (share: number) => (100 * share).toFixed(1);
  return `${percent(middle)} (${percent(least)} to ${percent(most)})`;
}

const TITLES = [
  "k",
  "shared with any earlier search",
  "aligned with one",
  "in common with the nearest one",
  `shared within a session of ${SESSION_TURNS}`,
  "of the most returned 20 % of all memories",
];
console.log(
  `% of returned blocks; ${traces.reduce((sum, { questions }) => sum + Math.min(LIMIT, questions.length), 0)} searches\n`,
);
printHead(TITLES);
for (const k of [5, 10, 15, 20, 100]) {
  const users = traces.map(({ questions }) => questions.slice(0, LIMIT).map(({ retrieved }) => retrieved.slice(0, k)));
  const overlaps = users.map(overlapShares);
  const cells = [
    overlaps.map(({ shared }) => shared),
    overlaps.map(({ aligned }) => aligned),
    overlaps.map(({ nearest }) => nearest),
    users.map((searches) => sharedInSession(searches, SESSION_TURNS)),
    users.map((searches, at) => shareOfMostReturned(searches, 0.2 * (traces[at]?.memories.length ?? 0))),
  ];
  printRow([k, ...cells.map(spread)]);
}

console.log("\n% of the words of a user's memories that stand in a run that another one of them has too\n");
printHead(["words of a run, at least", "share"]);
const texts = traces.map(({ memories }) => memories.map(({ memory }) => memory));
for (const run of [4, 6, 8, 12]) printRow([run, spread(texts.map((ofUser) => sharedWords(ofUser, run)))]);

console.log("\nSearches that find a memory whose text, or sentences, another one of them has\n");
printHead(["k", "searches", "of them"]);
for (const k of [20, 100]) {
  const repeated = await Promise.all(traces.map((trace) => repeatedIn(trace, k)));
  const counts = repeated.flat();
  printRow([k, counts.length, counts.filter((isRepeated) => isRepeated).length]);
}

/** For each search, whether a prompt of what it found gives fewer memories than that. */
async function repeatedIn({ memories, questions }: (typeof traces)[number], k: number): Promise<boolean[]> {
  const memprefix = openMeasuredMemprefix(ENGINE_MODELS[DEFAULT_ENGINE_MODEL], () => 0);
  const repeated: boolean[] = [];
  for (const { question, retrieved } of questions.slice(0, LIMIT)) {
    const found = retrieved.slice(0, k).map((at) => ({ id: String(at) as MemoryId, text: memories[at]?.memory ?? "" }));
    const messages = [{ role: "user", content: question }];
    const { warnings } = await memprefix.compose(
      composeRequest({ userId: "overlap" as UserId, messages, memories: found }),
    );
    repeated.push(warnings.some(({ code }) => code === "duplicate_text" || code === "contained_text"));
  }
  await memprefix.close();
  return repeated;
}
