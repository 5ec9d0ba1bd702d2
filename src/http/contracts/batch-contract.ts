import { z } from "zod";
import { InvalidRequestError } from "../../service/base/errors.js";
import {
  type BatchEvent,
  type BatchInput,
  type ComposeBatchOptions,
  DEFAULT_WINDOW,
  MAX_BATCH,
} from "../../service/batch/batch.js";
import { withoutAbsentMemories } from "../../service/compose/compose-request.js";
import { planner, warmStart, workers } from "../../service/fields/compose-options.js";
import * as field from "../../service/fields/fields.js";
import { readOptions } from "../../service/fields/fields.js";
import { problemOf, problemSchema } from "../problems/problem.js";
import { composeBody, composeResult, readCompose } from "./compose-contract.js";
import { writerOf } from "./wire-form.js";

/*
 * `POST /compose/batch`: requests as one JSON document or as NDJSON, answers likewise.
 */

const TOO_MANY = `must have at most ${MAX_BATCH} requests`;

/** Fields of a single request that a batch sets once, or does not use. */
const OF_ALL = { workers: true, dry_run: true } as const;

/** One request of a batch, for the OpenAPI document. */
export const batchRequest = composeBody.omit(OF_ALL).meta({
  id: "BatchRequest",
  description: "A `/compose` request. Requests of one conversation keep their order.",
});
export const batchBody = z
  .strictObject({
    requests: z.array(batchRequest).max(MAX_BATCH),
    workers: workers.nullish(),
    planner: planner.nullish(),
    warm_start: warmStart.nullish(),
  })
  .meta({ id: "Batch", description: `At most ${MAX_BATCH} requests, of any users.` });

export const progress = z
  .object({
    read: z.int().describe("Requests received."),
    found: z.int().describe("Requests whose memory search ended."),
    composed: z.int(),
    failed: z.int(),
  })
  .meta({ id: "BatchProgress", description: "Requests so far, by step." });
const batchAnswer = z
  .union([
    z.object({
      index: z.int().describe("The request's position in the batch, from 0."),
      rank: z.int().describe("The prompt's position in the order of sending, from 0."),
      worker: z.string().nullable().describe("The worker to send it to; null: no workers were named."),
      answer: composeResult,
    }),
    z.object({ index: z.int(), problem: problemSchema }),
  ])
  .meta({ id: "BatchAnswer", description: "A composed prompt, or why there is none." });
export const batchResult = z
  .object({ answers: z.array(batchAnswer).describe("In the order of sending."), end: progress })
  .meta({ id: "BatchResult" });
export const batchLine = z
  .union([batchAnswer, z.object({ progress }), z.object({ end: progress })])
  .meta({ id: "BatchLine", description: "An answer, progress, or the final totals." });

export const batchQuery = z.strictObject({
  window: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_BATCH)
    .default(DEFAULT_WINDOW)
    .describe("NDJSON: requests planned together."),
  workers: z
    .string()
    .transform((names) => names.split(","))
    .pipe(field.workers)
    .optional()
    .describe("NDJSON: worker names, separated by commas."),
  planner: planner.optional(),
  warm_start: z
    .enum(["true", "false"])
    .transform((given) => given === "true")
    .optional()
    .describe(`NDJSON: ${warmStart.description}`),
});

const ownFields = z.preprocess(withoutAbsentMemories, composeBody.omit(OF_ALL));

/** Reads one request of a batch. An invalid one becomes an input with its error, so that the others are composed. */
export function readBatchInput(index: number, given: unknown): BatchInput {
  try {
    return { index, request: readCompose(readOptions(ownFields, given)) };
  } catch (error) {
    return { index, error };
  }
}

type OfAllOptions = Pick<ComposeBatchOptions, "workers" | "planner" | "warmStart">;

/** Reads the requests of a JSON batch lazily, each as {@link readBatchInput} does. Throws {@link InvalidRequestError} for an invalid document. */
export function readBatch(body: unknown): {
  readonly inputs: Iterable<BatchInput>;
  readonly options: OfAllOptions;
} {
  const {
    requests,
    workers: names = null,
    planner: plannedBy,
    warm_start: isWarmStart,
  } = readOptions(
    // Requests are read one by one.
    batchBody.extend({ requests: z.array(z.unknown()).max(MAX_BATCH, TOO_MANY) }),
    body,
  );
  const given = { ...(plannedBy && { planner: plannedBy }), ...(isWarmStart && { warmStart: true }) };
  return { inputs: inputsOf(requests), options: { workers: names, ...given } };
}

function* inputsOf(requests: readonly unknown[]): Generator<BatchInput, void, undefined> {
  for (const [index, given] of requests.entries()) yield readBatchInput(index, given);
}

const written = writerOf(batchLine);

/** The JSON of an event: one line of an NDJSON answer. */
export function writeBatchEvent({ kind, ...event }: BatchEvent): z.input<typeof batchLine> {
  if (kind === "progress" || kind === "end") return written({ [kind]: event } as never);
  return written(("error" in event ? { index: event.index, problem: problemOf(event.error) } : event) as never);
}

export function tooMany(): InvalidRequestError {
  return new InvalidRequestError([{ field: "requests", message: TOO_MANY }]);
}
