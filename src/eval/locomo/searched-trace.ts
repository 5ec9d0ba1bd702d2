import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeWhole } from "../base/write-whole.js";
import type { KeptMemories } from "./conversation-memories.js";
import type { EvaluatedConversation } from "./evaluated-conversation.js";
import type { RecordedSearches } from "./recorded-searches.js";

/** Writes what was searched as a trace for each k, which `memstem replay` costs again, so that anybody can check the run's figures. */
export function writeTraces(
  directory: string,
  { id, asked }: EvaluatedConversation,
  { memories, searches, ks }: { memories: KeptMemories; searches: RecordedSearches; ks: readonly number[] },
): void {
  mkdirSync(join(directory, "traces"), { recursive: true });
  for (const k of ks) {
    const questions = asked.flatMap(({ at, question: { question, answer, category, evidence } }) => {
      const retrieved = searches.find(id, at, k)?.retrieved ?? null;
      return retrieved === null ? [] : [{ question, answer, category, evidence, retrieved }];
    });
    const trace = {
      sample_id: id,
      memories: memories.map(({ text, evidence }) => ({ memory: text, evidence })),
      questions,
    };
    writeWhole(join(directory, "traces", `${encodeURIComponent(id)}-k${k}.json`), JSON.stringify(trace));
  }
}
