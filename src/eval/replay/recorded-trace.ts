import { z } from "zod";
import { NO_ANSWER } from "../base/instruction.js";

/*
 * A recorded trace: one user's memories, and what a memory search returned for each question. Read tolerantly: other fields are ignored.
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

const orders = z.array(z.array(z.int().min(0)));
const peerOrders = z.object({ policy: z.string(), orders: z.record(z.string(), orders) });

export type RecordedTrace = z.output<typeof trace>;
/** Another system's order of each question's blocks, as memory indexes, by `k20`, `k100`, …. */
export type PeerOrders = z.output<typeof peerOrders>;

/** The file is no trace, or not one that this command can replay. */
export class TraceError extends Error {
  override readonly name = "TraceError";
}

/** What was answered to a question, as the history holds it. */
export function saidTo({ answer }: RecordedTrace["questions"][number]): string {
  return typeof answer === "string" ? answer : NO_ANSWER;
}

/** Checks a trace. Throws {@link TraceError} naming the first field that is wrong. */
export function readTrace(json: unknown): RecordedTrace {
  const read = checked(trace, json, "trace");
  for (const [at, { retrieved }] of read.questions.entries()) {
    const unknown = retrieved.find((index) => index >= read.memories.length);
    if (unknown !== undefined) throw new TraceError(`trace: questions[${at}].retrieved: there is no memory ${unknown}`);
  }
  return read;
}

/** Checks a peer's orders. Throws {@link TraceError} naming the first field that is wrong. */
export function readPeerOrders(json: unknown): PeerOrders {
  return checked(peerOrders, json, "peer");
}

function checked<S extends z.ZodType>(schema: S, json: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new TraceError(`${what}: ${issue?.path.join(".") || "the file"}: ${issue?.message ?? "is not valid"}`);
}
