import { largest } from "../../core/text/collections.js";
import { categoryTitle, DATASET_NAMES, type RunRecord } from "../base/run-record.js";
import { LEAST_CONVERSATIONS, RESAMPLES } from "../measures/bootstrap.js";
import type { ReportContent } from "./report-content.js";
import { notMeasured } from "./report-tables.js";

/** Conversations that a heading lists by id. */
const MOST_NAMED = 10;

/** Heading, summary and banner of a report. `unfinished`: what is missing of an interrupted run, else null. */
export function reportTitle({ run, records, summaries }: ReportContent) {
  const asked = summaries.map(({ overall, warmUps }) => overall.answered + overall.failed + warmUps);
  const most = largest(asked, 0);
  const engine = run.engine.model ?? "simulated cache";
  const { conversations } = run;
  const ids = conversations.map(({ id }) => id).join(", ");
  const behind = asked.filter((count) => count < most).length;
  return {
    heading: `${DATASET_NAMES[run.dataset]} with Mem0: answers, prompts and cache`,
    about: `${conversations.length > MOST_NAMED ? count(conversations.length, "conversation") : ids} · ${count(most, "question")} · ${count(run.arms.length, "arm")} · ${engine} · ${run.startedAt.slice(0, 10)}`,
    unfinished:
      run.finishedAt !== null
        ? null
        : `It was interrupted, or is still running: ${count(records.length, "record")} so far${
            behind === 0 ? "" : `, and ${count(behind, "arm")} behind the others`
          }. Only scores of the same questions compare.`,
  };
}

function count(number: number, thing: string): string {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

function memoryTimes({ ingest, settings = {} }: RunRecord): string {
  if (ingest === "turns") return "in each memory's text";
  return settings["times"] === true ? "given before each memory, as in Mem0's own evaluation" : "left out";
}

/** Facts to repeat a run by: names, and values, which are untrusted text. */
export function runFacts(run: RunRecord): (readonly [name: string, value: string])[] {
  const { engine, judge, machine, data } = run;
  const { served } = engine;
  const memories = run.conversations.reduce((sum, conversation) => sum + conversation.memories, 0);
  const facts: readonly (readonly [name: string, value: string | null])[] = [
    ["Engine", [engine.kind, engine.model, engine.url].filter((part) => part !== null).join(", ")],
    [
      "Served",
      served &&
        `${served.weights ?? "weights not known"}${served.version === null ? "" : `, version ${served.version}`}`,
    ],
    ["Judge", judge === null ? "none" : `${judge.model}, ${judge.url}`],
    ["Conversations", `${run.conversations.map(({ id }) => id).join(", ")} (${memories} memories, from ${run.ingest})`],
    ["Memory times", memoryTimes(run)],
    ["Categories", run.categories.map((category) => categoryTitle(category).replace("Category ", "")).join(", ")],
    ["Question limit", run.limit === null ? "none" : String(run.limit)],
    ["Warm-up", `${run.warmUpQuestions} questions per arm`],
    ["Data", `${data.file}, sha256 ${data.sha256}`],
    ["Versions", `memprefix ${run.memprefix}, mem0ai ${run.mem0}, Node ${run.node}`],
    ["Machine", `${machine.platform}, ${machine.cpu}, ${machine.cores} cores, ${machine.memoryMegabytes} MB`],
    ["Started", run.startedAt],
    ["Finished", run.finishedAt ?? "not finished"],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
}

const ENGINES = {
  simulated: "No engine answered: cached tokens are those of a simulated prefix cache.",
  url: "An engine behind an OpenAI-compatible API answered; cached tokens are what it reported.",
} as const;

/** How to read the figures and what they leave out, one fact each. */
export function reportNotes(content: ReportContent): string[] {
  const { run, summaries, failures } = content;
  const { judge } = run;
  const unread = summaries.reduce((sum, { overall }) => sum + overall.judgeUnread, 0);
  const failed = failures.filter(({ isWarmUp }) => !isWarmUp).length;
  const warmUps = summaries.reduce((sum, summary) => sum + summary.warmUps, 0);
  const missing = notMeasured(content);
  const notes: readonly (string | null)[] = [
    `Every arm had the same memories and the same questions in the same order. Between arms: ${run.engine.emptied}.`,
    ENGINES[run.engine.kind],
    warmUps === 0
      ? "No question was asked to warm up: the first ones are in all figures."
      : `Questions asked to warm the engine up (${run.warmUpQuestions} per arm, the first ones) are in no figure.`,
    failed === 0
      ? "No question failed."
      : `${failed} answers are missing because something failed; they are listed and are in no mean.`,
    missing.length === 0 ? null : `Not measured in this run: ${missing.join(", ")}. That is not zero.`,
    "TTFT is the time from the request to the first token, p50 the median and p95 the 95th percentile. Hit ratio is cached tokens divided by prompt tokens, over all questions together.",
    "Evidence in prompt is the share of gold evidence whose memory stands in the prompt.",
    "F1 is that of Mem0’s evaluation: of distinct words, unstemmed, gold answers taken whole. LoCoMo’s own F1 (repeated words counted, Porter stems, no articles, category 1 split at commas, category 3 cut at a semicolon) is another measure. Category 5 is not scored.",
    missing.includes("Log-likelihood")
      ? null
      : "Log-likelihood is ln of the probability that the model gives the right answer, word for word, after the prompt, per token of it; a point is 0.01 of it. It needs no judge and no luck, but says nothing of answers in other words.",
    run.dataset === "locomo"
      ? "An audit found 99 of LoCoMo’s 1,540 labels in categories 1 to 4 wrong, and a judge that accepts vague answers (docs/quality.md)."
      : null,
    "Scores are sensitive to the judge, to the labels and above all to the answer prompt, which is the same in all arms here: compare the arms of one run, not scores of different runs or publications.",
    judge &&
      `Answers were judged by ${judge.model}, which is a language model and errs; its prompt and raw answers are in results.jsonl. ${
        unread === 0 ? "Every verdict could be read." : `${unread} verdicts could not be read and count neither way.`
      }`,
    `Intervals are 95 % bootstrap intervals (${RESAMPLES} resamples). Of ${LEAST_CONVERSATIONS} conversations and more, whole conversations are drawn, with all their questions, because questions of one conversation are not independent, and the interval is widened for their small number (expanded percentiles). Of fewer, questions are drawn: such an interval says how much these questions vary, not how other conversations would. Each interval stands for itself: of twenty comparisons without a difference, about one shows one.`,
  ];
  return notes.filter((note) => note !== null);
}
