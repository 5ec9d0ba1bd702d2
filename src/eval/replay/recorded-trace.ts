import { z } from "zod";
import { NOTHING_CARRIED, type ScopePolicy } from "../../core/index.js";
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

const orders = z.array(z.array(z.int().min(0)));
const peerOrders = z.object({ policy: z.string(), orders: z.record(z.string(), orders) });

export type RecordedTrace = z.output<typeof trace>;
/** Another system's order of each question's blocks, as memory indexes, by `k20`, `k100`, …. */
export type PeerOrders = z.output<typeof peerOrders>;

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

export function readPeerOrders(json: unknown): PeerOrders {
  return checked(peerOrders, json, "peer");
}

/**
 * A policy that orders each question of a trace, asked from the first on as single requests, as another system did. Use it for one replay:
 * it counts the questions. Throws {@link EvaluationError} where an order is missing or has other blocks.
 */
export function recordedOrder(trace: RecordedTrace, peer: PeerOrders, k: number): ScopePolicy {
  const orders = peer.orders[`k${k}`];
  if (orders === undefined) throw new EvaluationError(`peer: has no orders for k = ${k}`);
  let at = 0;
  return {
    // Plans name a policy; this is the system recorded most.
    name: "context-pilot",
    order: ({ retrieved }) => {
      const asked = trace.questions[at]?.retrieved.slice(0, k) ?? [];
      const order = orders[at++] ?? [];
      // Labels follow the first appearance of memories, so a block is found by its position in the search results.
      const labels = order.flatMap((memory) => retrieved[asked.indexOf(memory)]?.label ?? []);
      if (labels.length !== retrieved.length)
        throw new EvaluationError(`peer: order ${at - 1} is not of what was retrieved`);
      return { labels, carried: NOTHING_CARRIED, searchPath: [] };
    },
  };
}
