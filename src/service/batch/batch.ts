/* batch: requests of any users, planned together. Leaves: events in execution order: answers (with a worker, if any are named) and failures. */

import { setImmediate } from "node:timers/promises";
import { type BatchPlanner, DEFAULT_BATCH_PLANNER, type TokenCounter } from "../../core/index.js";
import { type ComposeAnswer, publicAnswer } from "../base/call-types.js";
import type { PlanBatch } from "../base/memprefix-parts.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { PromptRouting } from "../compose/prompt-routing.js";
import type { EngineReports } from "../learning/engine-reports.js";
import { BatchBlocks, BatchRouting, type FoundRequest, planFound, type RoutableRequest } from "./batch-planning.js";

export const MAX_BATCH = 10_000;
const SEARCHES_AT_ONCE = 8;
/** Requests read before the event loop is yielded. */
const READ_AT_ONCE = 32;

/** One request of a batch: valid, or an error. `index` is its position in the batch. */
export type BatchInput =
  | { readonly index: number; readonly request: ComposeRequest }
  | { readonly index: number; readonly error: unknown };

export type BatchEvent =
  | {
      readonly kind: "answer";
      readonly index: number;
      /** Execution order, from 0: send the prompts to the engine in this order. */
      readonly rank: number;
      /** The worker expected to have cached most of the prompt; null if no workers are named. */
      readonly worker: string | null;
      readonly answer: ComposeAnswer;
    }
  | { readonly kind: "failure"; readonly index: number; readonly error: unknown }
  | {
      readonly kind: "end";
      readonly read: number;
      readonly found: number;
      readonly composed: number;
      readonly failed: number;
    };

export interface BatchComposer {
  readonly composer: Pick<PromptComposer, "compose" | "known" | "clusters" | "replaceClusters" | "lookUp">;
  readonly reports: Pick<EngineReports, "neverServed">;
  readonly routing: PromptRouting;
  /** Default workers; empty: no routing. */
  readonly workers: readonly string[];
  readonly countTokens: TokenCounter;
  readonly planning: PlanBatch;
}

export interface ComposeBatchOptions {
  /** Names of workers, each different; null: the configured ones. */
  readonly workers?: readonly string[] | null;
  readonly planner?: BatchPlanner | undefined;
  /** The prompts are not sent to an engine: they only teach later orders. Default: false. */
  readonly warmStart?: boolean | undefined;
  /** Stops the batch: nothing more is composed. */
  readonly signal: AbortSignal;
}

/** Composes a batch (docs/internals/algorithms.md, "Batch planning"). A failed request is an event; the others go on. The last event is `end`. */
export async function* composeBatch(
  batches: BatchComposer,
  inputs: Iterable<BatchInput>,
  { workers: given = null, planner = DEFAULT_BATCH_PLANNER, warmStart = false, signal }: ComposeBatchOptions,
): AsyncGenerator<BatchEvent, void, undefined> {
  const { composer, reports, countTokens, planning } = batches;
  const workers = given ?? batches.workers;
  const routing = workers.length === 0 ? null : new BatchRouting(workers, batches.routing);
  const read: BatchInput[] = [];
  for (const input of inputs) {
    read.push(input);
    // Reading blocks the event loop: let other requests run.
    if (read.length % READ_AT_ONCE === 0) await setImmediate();
  }
  const found: FoundRequest[] = [];
  const failed: { readonly index: number; readonly error: unknown }[] = [];
  for (let at = 0; at < read.length; at += SEARCHES_AT_ONCE) {
    const some = read.slice(at, at + SEARCHES_AT_ONCE);
    for (const input of await Promise.all(some.map((one) => lookedUp(composer, one, signal))))
      if ("error" in input) failed.push(input);
      else found.push(input);
    signal.throwIfAborted();
  }
  for (const failure of failed) yield { kind: "failure", ...failure };
  const blocks = new BatchBlocks(countTokens);
  const { requests: plan, trees } = await planFound(found, blocks, { planning, planner }, composer);
  const routed = (await routing?.route(plan, blocks)) ?? [];
  const processed: (RoutableRequest & { readonly worker: string })[] = [];
  let composed = 0;
  for (const [at, { found: input, order, shared }] of plan.entries()) {
    // Lets other requests run.
    await setImmediate();
    signal.throwIfAborted();
    const { index, lookup } = input;
    try {
      const request = { ...input.request, workers, worker: routed[at] ?? null };
      // The plan's first blocks apply if the request names no policy.
      const ahead = { lookup, front: order.slice(0, shared) };
      const answer = publicAnswer(await composer.compose({ request, signal, found: ahead }));
      const { worker = null } = answer;
      if (worker !== null) processed.push({ found: input, order, worker });
      if (warmStart) await reports.neverServed(request.userId, request.agentId, answer.requestId);
      yield { kind: "answer", index, rank: composed, worker, answer };
      composed++;
    } catch (error) {
      yield { kind: "failure", index, error };
    }
  }
  await routing?.remember(processed);
  for (const { scope, nodes } of trees) await composer.replaceClusters(scope, nodes);
  yield { kind: "end", read: read.length, found: found.length, composed, failed: read.length - composed };
}

async function lookedUp(
  composer: Pick<PromptComposer, "lookUp">,
  input: BatchInput,
  signal: AbortSignal,
): Promise<FoundRequest | Extract<BatchInput, { readonly error: unknown }>> {
  if ("error" in input) return input;
  try {
    return { ...input, lookup: await composer.lookUp(input.request, signal) };
  } catch (error) {
    return { index: input.index, error };
  }
}
