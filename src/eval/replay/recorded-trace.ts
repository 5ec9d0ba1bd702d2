import { z } from "zod";
import { NO_ANSWER } from "../base/hand-built.js";
import type { EvaluatedMemory } from "../base/prompt-memories.js";
import { checked, EvaluationError } from "../base/run-files.js";

/*
 * A recorded trace: one user's memories, and the search results of each question. Other fields are ignored.
 */

const trace = z.object({
  sample_id: z.string().optional(),
  memories: z.array(z.object({ memory: z.string().min(1), evidence: z.array(z.string()).default([]) })).min(1),
  questions: z
    .array(
      z.object({
        question: z.string(),
        answer: z.unknown().optional(),
        evidence: z.array(z.string()).default([]),
        retrieved: z.array(z.int().min(0)),
      }),
    )
    .min(1),
});

export type RecordedTrace = z.output<typeof trace>;

export function memoriesOf({ memories }: RecordedTrace): EvaluatedMemory[] {
  return memories.map(({ memory, evidence }) => ({ text: memory, evidence }));
}

/** The recorded answer, as the history holds it. */
export function saidTo({ answer }: RecordedTrace["questions"][number]): string {
  return typeof answer === "string" ? answer : NO_ANSWER;
}

/** Throws {@link EvaluationError} naming the first invalid field. */
export function readTrace(json: unknown): RecordedTrace {
  const read = checked(trace, json, "trace");
  for (const [at, { retrieved }] of read.questions.entries()) {
    const unknown = retrieved.find((index) => index >= read.memories.length);
    if (unknown !== undefined)
      throw new EvaluationError(`trace: questions[${at}].retrieved: there is no memory ${unknown}`);
  }
  return read;
}
