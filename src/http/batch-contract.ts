import { z } from "zod";
import { type BatchEvent, type BatchInput, DEFAULT_WINDOW, MAX_BATCH } from "../service/batch.js";
import { InvalidRequestError } from "../service/errors.js";
import * as field from "../service/fields.js";
import { readOptions } from "../service/read-options.js";
import { composeBody, composeBodyWithNulls, composeResult, readCompose, writeCompose } from "./contracts.js";
import { problemOf, problemSchema } from "./problem.js";

/*
 * `POST /compose/batch` over the wire: requests as a JSON array or one per line, answers likewise.
 */

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
  .strictObject({ requests: z.array(batchRequest).max(MAX_BATCH) })
  .meta({ id: "Batch", description: `At most ${MAX_BATCH} requests, of any users.` });

const progress = z.object({ read: z.int(), found: z.int(), composed: z.int(), failed: z.int() });
export const batchAnswer = z
  .union([
    z.object({
      index: z.int().meta({ description: "The request's place in the batch, from 0." }),
      rank: z.int().meta({ description: "Send the prompts to the engine in this order, from 0." }),
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
export function readBatch(body: unknown): Iterable<BatchInput> {
  const { requests } = readOptions(
    z.strictObject({ requests: z.array(z.unknown()).max(MAX_BATCH, `must have at most ${MAX_BATCH} requests`) }),
    body,
  );
  return inputsOf(requests);
}

function* inputsOf(requests: readonly unknown[]): Generator<BatchInput, void, undefined> {
  for (const [index, given] of requests.entries()) yield readBatchInput(index, given);
}

/** An event as one line of an answer. */
export function writeBatchEvent(event: BatchEvent): z.input<typeof batchLine> {
  switch (event.kind) {
    case "answer":
      return { index: event.index, rank: event.rank, answer: writeCompose(event.answer) };
    case "failure":
      return { index: event.index, problem: problemOf(event.error) };
    case "progress":
    case "end": {
      const { kind, ...counts } = event;
      return kind === "end" ? { end: counts } : { progress: counts };
    }
  }
}

/** Where a batch has more requests than it may. */
export function tooMany(): InvalidRequestError {
  return new InvalidRequestError([{ field: "requests", message: `must have at most ${MAX_BATCH} requests` }]);
}
