/**
 * `npm run bench -- depth --data FOLDER`: does a sure first token mean that few memories are enough? For questions of six LoCoMo conversations
 * with recorded real Mem0 searches, single prompts of the 5, 10 and 20 most relevant memories go to vLLM: how unsure its first token is
 * (as adaptive depth measures it), and how likely the right answer is after each. From these, what every threshold would have given:
 * thresholds are fitted on three conversations and tested on the other three. `LADDER=1,2,3,4,5,6` is AdaCache's. `QUESTIONS=50` of each
 * conversation, `MODEL=smol`; `OUT=FILE` keeps what was measured, and a run goes on from there. `npm run engines` installs what it starts.
 *
 * `the least that is enough`: the fewest memories after which the right answer is at least as likely as after all, known from the answer itself.
 *
 * Floor of what is computed: the prompt with the first 5. Ceiling: the prompts of all tries, of which each begins with the one before.
 */
import { mostEntropy } from "../src/core/compose/depth.js";
import { SECTION_CLOSING, SECTION_OPENING } from "../src/core/prompt/section.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { MODELS } from "../test/real-engines/packages.js";
import { likelihoodOn } from "./answer-likelihood.js";
import {
  isTested,
  type MeasuredDepths,
  measuredDepths,
  type Outcome,
  outcomeOf,
  type Rule,
  sureAt,
} from "./depth-outcomes.js";
import { KeptRecords } from "./kept-records.js";
import { neededData } from "./recorded-data.js";
import { drawnInTurn } from "./seeded.js";
import { meanWithInterval } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const { env } = process;
const LIMIT = Number(env["QUESTIONS"] ?? 50);
const model = MODELS.find((name) => name === (env["MODEL"] ?? "smol")) ?? "smol";
/** Memories of the tries, and of the prompt without any; by default those of `MEMPREFIX_ADAPTIVE_DEPTH=on`. */
const DEPTHS = (env["LADDER"] ?? "5,10,20").split(",").map(Number);
const ALL = DEPTHS.at(-1) ?? 0;
const THRESHOLDS = [1, 1.5, 2, 3, 4, 5, 6, 7, Number.POSITIVE_INFINITY];
const measured = measuredDepths.refine(
  ({ tries }) => tries.map(({ memories }) => memories).join() === DEPTHS.join(),
  "of another LADDER",
);

const data = neededData();
const records = new KeptRecords(env["OUT"], measured, keyOf);

function keyOf({ conversation, question }: Pick<MeasuredDepths, "conversation" | "question">): string {
  return `${conversation} ${question}`;
}

const missing = askedInTurn().filter((place) => !records.has(keyOf(place)));
await records.complete(missing, { model, contextTokens: 4_096 }, measure);
report(records.all);

/** So many questions of each conversation, one of each in turn, drawn from all that have an answer. */
function askedInTurn(): readonly Pick<MeasuredDepths, "conversation" | "question">[] {
  const questions = RECORDED_CONVERSATIONS.map((conversation) =>
    readRecordedTrace(data, conversation).questions.map(({ answer }, question) => ({ conversation, question, answer })),
  );
  return drawnInTurn(questions, LIMIT, ({ answer }) => typeof answer === "string");
}

async function measure(
  url: string,
  { conversation, question }: Pick<MeasuredDepths, "conversation" | "question">,
): Promise<MeasuredDepths> {
  const { memories, questions } = readRecordedTrace(data, conversation);
  const asked = questions[question] as (typeof questions)[number];
  const said = (depth: number) => {
    const lines = asked.retrieved.slice(0, depth).map((at) => `- ${memories[at]?.memory}\n`);
    const section = depth === 0 ? "" : `${SECTION_OPENING}${lines.join("")}${SECTION_CLOSING}`;
    const messages = [
      { role: "system", content: INSTRUCTION },
      { role: "user", content: `${section}${asked.question}` },
    ];
    return likelihoodOn({ url, model }, messages, String(asked.answer), 20);
  };
  const tries: MeasuredDepths["tries"] = [];
  for (const depth of DEPTHS) {
    const { promptTokens: tokens, likelihood, first } = await said(depth);
    const entropy = mostEntropy(first.slice(0, 20)) ?? Number.NaN;
    tries.push({ memories: depth, tokens, entropy, nats: likelihood.nats });
  }
  const { promptTokens: bareTokens, likelihood } = await said(0);
  const answerTokens = likelihood.tokens;
  return measured.parse({ conversation, question, answerTokens, bareTokens, tries });
}

function leastEnough({ tries }: MeasuredDepths): number {
  return tries.findIndex(({ nats }) => nats <= (tries.at(-1)?.nats ?? Number.NaN));
}

function cells({ shares, computed, nats }: Outcome): string {
  const percents = shares.map((share) => `${(100 * share).toFixed(0)} %`).join(" / ");
  return `${percents} | ${computed.toFixed(2)} | ${meanWithInterval(nats)}`;
}

function report(all: readonly MeasuredDepths[]): void {
  const tested = all.filter(isTested);
  const fitted = all.filter((one) => !isTested(one));
  console.log(
    `${model}: ${fitted.length} and ${tested.length} questions; nats a token of the right answer, against all ${ALL}\n`,
  );
  const of = `of ${DEPTHS.join(" / ")}`;
  const titles = ["computed", "nats"];
  printHead(["answered from", `three conversations: ${of}`, ...titles, `the others: ${of}`, ...titles]);
  const row = (name: string, at: Rule, tried = true) =>
    printRow([name, cells(outcomeOf(fitted, at, tried)), cells(outcomeOf(tested, at, tried))]);
  for (const [at, depth] of DEPTHS.slice(0, -1).entries()) row(`the first ${depth}`, () => at, false);
  row("the least that is enough", leastEnough, false);
  for (const threshold of THRESHOLDS) row(`at most ${threshold} nats`, sureAt(threshold));
  // Whether surety says anything: the cost of the first few where it is below its median, and where it is not.
  for (const [depth, name] of DEPTHS.slice(0, -1).entries()) {
    const middle = all.map(({ tries }) => tries[depth]?.entropy ?? 0).toSorted((a, b) => a - b)[all.length >> 1] ?? 0;
    const sure = (one: MeasuredDepths) => (one.tries[depth]?.entropy ?? 0) < middle;
    for (const [word, those] of [
      ["surer", all.filter(sure)],
      ["less sure", all.filter((one) => !sure(one))],
    ] as const)
      console.log(
        `the first ${name}, the ${word} half (${middle.toFixed(2)} nats): ${cells(outcomeOf(those, () => depth, false))}`,
      );
  }
}
