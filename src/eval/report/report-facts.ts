import type { RunRecord } from "../base/run-record.js";

/** A setting or a circumstance of a run, with its value: text of others. */
export interface RunFact {
  readonly name: string;
  readonly value: string;
}

/** What a run was made with: enough to make it again. */
export function runFacts(run: RunRecord): RunFact[] {
  const { engine, judge, machine, data } = run;
  const memories = run.conversations.reduce((sum, conversation) => sum + conversation.memories, 0);
  return [
    { name: "Engine", value: [engine.kind, engine.model, engine.url].filter((part) => part !== null).join(", ") },
    { name: "Judge", value: judge === null ? "none" : `${judge.model}, ${judge.url}` },
    {
      name: "Conversations",
      value: `${run.conversations.map(({ id }) => id).join(", ")} (${memories} memories, from ${run.ingest})`,
    },
    { name: "Categories", value: run.categories.join(", ") },
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
