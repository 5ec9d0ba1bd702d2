import { z } from "zod";
import { InvalidRequestError } from "../../service/base/errors.js";
import { type BatchEvent, type BatchInput, DEFAULT_WINDOW, MAX_BATCH } from "../../service/batch/batch.js";
import type { ComposeAnswer } from "../../service/compose/compose-answer.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/read-options.js";
import { problemOf, problemSchema } from "../problems/problem.js";
import { composeBody, composeBodyWithNulls, composeResult, readCompose, writeCompose } from "./contracts.js";

/*
 * `POST /compose/batch` over the wire: requests as a JSON array or one per line, answers likewise.
 */

const workers = field.workers.meta({
  description:
    "Engines or agents with a cache of their own, by name: each request is given to the one that has processed most of it.",
});
const urgency = {
  priority: field.priority.nullish().meta({ description: "Higher ones are executed first. Default 0." }),
  deadline: field.deadline
    .nullish()
    .meta({ description: "Of one priority, earlier ones first; in any unit. Absent: after all that have one." }),
};

/** One request of a batch, for the OpenAPI document. */
export const batchRequest = composeBody.extend(urgency).meta({
  id: "BatchRequest",
  description: "A request as for `/compose`, with how urgent it is. Those of one conversation keep their order.",
});
export const batchBody = z
  .strictObject({ requests: z.array(batchRequest).max(MAX_BATCH), workers: workers.optional() })
  .meta({ id: "Batch", description: `At most ${MAX_BATCH} requests, of any users.` });

const progress = z.object({ read: z.int(), found: z.int(), composed: z.int(), failed: z.int() });
export const batchAnswer = z
  .union([
    z.object({
      index: z.int().meta({ description: "The request's place in the batch, from 0." }),
      rank: z.int().meta({ description: "Send the prompts to the engine in this order, from 0." }),
      worker: z.string().nullable().meta({ description: "Who should execute it; null where none were named." }),
      answer: composeResult,
    }),
    z.object({ index: z.int(), problem: problemSchema }),
  ])
  .meta({ id: "BatchAnswer" });
export const batchResult = z
  .object({ answers: z.array(batchAnswer).meta({ description: "In order of rank." }), end: progress })
  .meta({ id: "BatchResult" });
export const batchLine = z
  .union([batchAnswer, z.object({ progress }), z.object({ end: progress })])
  .meta({ id: "BatchLine", description: "An answer, how far it got, or, last, what it came to." });

export const batchQuery = z.strictObject({
  window: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_BATCH)
    .default(DEFAULT_WINDOW)
    .meta({ description: "Requests that are planned together where they come line by line." }),
  workers: z
    .string()
    .transform((names) => names.split(","))
    .pipe(field.workers)
    .optional()
    .meta({ description: "Workers where requests come line by line, by name, with commas between." }),
});

/** Reads one request of a batch; what is wrong with it is said in its place. */
export function readBatchInput(index: number, given: unknown): BatchInput {
  try {
    const { priority, deadline, ...body } = readOptions(z.looseObject(urgency), given);
    const request = readCompose(readOptions(composeBodyWithNulls, body));
    return { index, request, priority: priority ?? 0, deadline: deadline ?? null };
  } catch (error) {
    return { index, error };
  }
}

/**
 * The requests of a JSON batch, each read when it is asked for. Throws {@link InvalidRequestError} where it is none, whatever its requests
 * are.
 */
export function readBatch(body: unknown): {
  readonly inputs: Iterable<BatchInput>;
  readonly workers: readonly string[];
} {
  const { requests, workers: names = [] } = readOptions(
    z.strictObject({
      requests: z.array(z.unknown()).max(MAX_BATCH, `must have at most ${MAX_BATCH} requests`),
      workers: workers.optional(),
    }),
    body,
  );
  return { inputs: inputsOf(requests), workers: names };
}

function* inputsOf(requests: readonly unknown[]): Generator<BatchInput, void, undefined> {
  for (const [index, given] of requests.entries()) yield readBatchInput(index, given);
}

/** An event as one line of an answer. */
export function writeBatchEvent(event: BatchEvent): z.input<typeof batchLine> {
  switch (event.kind) {
    case "answer":
      return {
        index: event.index,
        rank: event.rank,
        worker: event.worker,
        answer: writeCompose(pinned(event.answer, event.worker)),
      };
    case "failure":
      return { index: event.index, problem: problemOf(event.error) };
    case "progress":
    case "end": {
      const { kind, ...counts } = event;
      return kind === "end" ? { end: counts } : { progress: counts };
    }
  }
}

/** The headers by which routers keep requests of one key on one replica (SGLang's gateway, NVIDIA Dynamo). */
const ROUTING_HEADERS = ["x-smg-routing-key", "x-dynamo-session-id"] as const;

function pinned(answer: ComposeAnswer, worker: string | null): ComposeAnswer {
  if (worker === null) return answer;
  const routing = Object.fromEntries(ROUTING_HEADERS.map((header) => [header, worker]));
  return { ...answer, engine: { ...answer.engine, headers: { ...answer.engine.headers, ...routing } } };
}

/** Where a batch has more requests than it may. */
export function tooMany(): InvalidRequestError {
  return new InvalidRequestError([{ field: "requests", message: `must have at most ${MAX_BATCH} requests` }]);
}
