import { z } from "zod";
import { type BatchEvent, type BatchInput, type ComposeBatchOptions, MAX_BATCH } from "../../service/batch/batch.js";
import { withoutAbsentMemories } from "../../service/compose/compose-request.js";
import { planner, warmStart, workers } from "../../service/fields/compose-options.js";
import { readOptions } from "../../service/fields/fields.js";
import { problemOf, problemSchema } from "../problems/problem.js";
import { composeBody, composeResult, readCompose } from "./compose-contract.js";
import { writerOf } from "./wire-form.js";

/*
 * `POST /compose/batch`.
 */

/** Fields of a single request that a batch sets once, or does not use. */
const OF_ALL = { workers: true, dry_run: true } as const;

const batchRequest = composeBody.omit(OF_ALL).meta({
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

const end = z
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
  .object({ answers: z.array(batchAnswer).describe("In the order of sending."), end })
  .meta({ id: "BatchResult" });
const ownFields = z.preprocess(withoutAbsentMemories, composeBody.omit(OF_ALL));

type OfAllOptions = Pick<ComposeBatchOptions, "workers" | "planner" | "warmStart">;

/**
 * Reads the requests of a batch lazily. An invalid one becomes an input with its error, so that the others are composed. Throws
 * `InvalidRequestError` for an invalid document.
 */
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
    batchBody.extend({ requests: z.array(z.unknown()).max(MAX_BATCH, `must have at most ${MAX_BATCH} requests`) }),
    body,
  );
  const given = { ...(plannedBy && { planner: plannedBy }), ...(isWarmStart && { warmStart: true }) };
  return { inputs: inputsOf(requests), options: { workers: names, ...given } };
}

function* inputsOf(requests: readonly unknown[]): Generator<BatchInput, void, undefined> {
  for (const [index, given] of requests.entries()) {
    try {
      yield { index, request: readCompose(readOptions(ownFields, given)) };
    } catch (error) {
      yield { index, error };
    }
  }
}

const written = writerOf(z.union([batchAnswer, z.object({ end })]));

/** The JSON of an event: an entry of `answers`, or the document's last field. */
export function writeBatchEvent({ kind, ...event }: BatchEvent): object {
  if (kind === "end") return written({ end: event } as never);
  return written(("error" in event ? { index: event.index, problem: problemOf(event.error) } : event) as never);
}
