import { largest } from "../../core/text/lists.js";
import { categoryTitle, DATASET_NAMES } from "../base/question-types.js";
import type { RunRecord } from "../base/run-record.js";
import type { ReportContent } from "./report-content.js";

/** The head of both reports. */
export interface ReportTitle {
  readonly heading: string;
  readonly about: string;
  /** What is missing of a run that did not end; null where it did. */
  readonly unfinished: string | null;
}

/** Heading, summary and banner of a report. */
export function reportTitle({ run, records, summaries }: ReportContent): ReportTitle {
  const asked = summaries.map(({ overall, warmUps }) => overall.answered + overall.failed + warmUps);
  const most = largest(asked, 0);
  const engine =
    run.engine.model ?? { simulated: "simulated cache", embedded: "engine inside", url: "engine" }[run.engine.kind];
  const ids = run.conversations.map(({ id }) => id).join(", ");
  const behind = asked.filter((count) => count < most).length;
  return {
    heading: `${DATASET_NAMES[run.dataset]} with Mem0: answers, prompts and cache`,
    about: `${ids} · ${count(most, "question")} · ${count(run.arms.length, "arm")} · ${engine} · ${run.startedAt.slice(0, 10)}`,
    unfinished:
      run.finishedAt !== null
        ? null
        : `It was interrupted, or is still running: ${count(records.length, "record")} so far${
            behind === 0 ? "" : `, and ${count(behind, "arm")} behind the others`
          }. Only differences question by question compare like with like.`,
  };
}

function count(number: number, thing: string): string {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

/** A setting or a circumstance of a run, with its value: text of others. */
export interface RunFact {
  readonly name: string;
  readonly value: string;
}

function memoryTimes({ ingest, settings = {} }: RunRecord): string {
  if (ingest === "turns") return "in each memory's text";
  return settings["times"] === true ? "given before each memory, as in Mem0's own evaluation" : "left out";
}

/** What a run was made with: enough to repeat it. */
export function runFacts(run: RunRecord): RunFact[] {
  const { engine, judge, machine, data } = run;
  const memories = run.conversations.reduce((sum, conversation) => sum + conversation.memories, 0);
  return [
    { name: "Engine", value: [engine.kind, engine.model, engine.url].filter((part) => part !== null).join(", ") },
    ...(engine.served === null
      ? []
      : [
          {
            name: "Served",
            value: `${engine.served.weights ?? "weights not known"}, version ${engine.served.version}`,
          },
        ]),
    {
      name: run.otherJudges.length === 0 ? "Judge" : "Judges",
      value:
        judge === null ? "none" : [judge, ...run.otherJudges].map(({ model, url }) => `${model}, ${url}`).join("; "),
    },
    ...(run.excluded === null
      ? []
      : [
          {
            name: "Left out",
            value: `${run.excluded.questions} questions, by ${run.excluded.file}, sha256 ${run.excluded.sha256}`,
          },
        ]),
    {
      name: "Conversations",
      value: `${run.conversations.map(({ id }) => id).join(", ")} (${memories} memories, from ${run.ingest})`,
    },
    { name: "Memory times", value: memoryTimes(run) },
    {
      name: "Categories",
      value: run.categories.map((category) => categoryTitle(category).replace("Category ", "")).join(", "),
    },
    { name: "Question limit", value: run.limit === null ? "none" : String(run.limit) },
    { name: "Warm-up", value: `${run.warmUpQuestions} questions per arm` },
    { name: "Seed", value: String(run.seed) },
    { name: "Data", value: `${data.file}, sha256 ${data.sha256}` },
    { name: "Versions", value: `memstem ${run.memstem}, mem0ai ${run.mem0}, Node ${run.node}` },
    {
      name: "Machine",
      value: `${machine.platform}, ${machine.cpu}, ${machine.cores} cores, ${machine.memoryMegabytes} MB`,
    },
    { name: "Started", value: run.startedAt },
    { name: "Finished", value: run.finishedAt ?? "not finished" },
  ];
}
