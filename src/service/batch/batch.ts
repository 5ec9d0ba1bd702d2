/*
 * batch: many requests at once.
 * Enters: requests of any users, as a list or a stream. Leaves: events in execution order: answers (with a worker, if any are named) and failures.
 * Plans one window at a time, and composes each request through the composer.
 */

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
  | ({ readonly kind: "end" } & BatchProgress);

export interface BatchProgress {
  readonly read: number;
  readonly found: number;
  readonly composed: number;
  readonly failed: number;
}

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
  readonly window: number;
  /** Names of workers, each different; null: the configured ones. */
  readonly workers?: readonly string[] | null;
  readonly planner?: BatchPlanner | undefined;
  /** The prompts are not sent to an engine: they only teach later orders. Default: false. */
  readonly warmStart?: boolean | undefined;
  /** Stops the batch: nothing more is composed. */
  readonly signal: AbortSignal;
}

/**
 * Composes a batch (docs/internals/algorithms.md, "Batch planning") window by window: looks up memories, plans by what should be cached then, and
 * composes one prompt at a time. A failed request is an event; the others continue. The last event is `end`.
 */
export async function* composeBatch(
  batches: BatchComposer,
  inputs: AsyncIterable<BatchInput> | Iterable<BatchInput>,
  { window, workers: given = null, planner = DEFAULT_BATCH_PLANNER, warmStart = false, signal }: ComposeBatchOptions,
): AsyncGenerator<BatchEvent, void, undefined> {
  const { composer, reports, countTokens, planning } = batches;
  const workers = given ?? batches.workers;
  const routing = workers.length === 0 ? null : new BatchRouting(workers, batches.routing);
  const progress = { read: 0, found: 0, composed: 0, failed: 0 };
  for await (const some of windowsOf(inputs, window)) {
    const readable: FoundRequest[] = [];
    for (const input of some) {
      progress.read++;
      if ("error" in input) {
        progress.failed++;
        yield { kind: "failure", index: input.index, error: input.error };
      } else readable.push({ ...input, lookup: { found: [] } });
    }
    const found: FoundRequest[] = [];
    for (let at = 0; at < readable.length; at += SEARCHES_AT_ONCE) {
      const searched = await Promise.all(
        readable.slice(at, at + SEARCHES_AT_ONCE).map(async (input) => lookedUp(composer, input, signal)),
      );
      signal.throwIfAborted();
      for (const input of searched) {
        if ("error" in input) {
          progress.failed++;
          yield { kind: "failure", index: input.index, error: input.error };
        } else {
          progress.found++;
          found.push(input);
        }
      }
    }
    const blocks = new BatchBlocks(countTokens);
    const { requests: plan, trees } = await planFound(found, blocks, { planning, planner }, composer);
    const routed = (await routing?.route(plan, blocks)) ?? [];
    const processed: (RoutableRequest & { readonly worker: string })[] = [];
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
        yield { kind: "answer", index, rank: progress.composed, worker, answer };
        progress.composed++;
      } catch (error) {
        progress.failed++;
        yield { kind: "failure", index, error };
      }
    }
    await routing?.remember(processed);
    for (const { scope, nodes } of trees) await composer.replaceClusters(scope, nodes);
  }
  yield { kind: "end", ...progress };
}

async function lookedUp(
  composer: Pick<PromptComposer, "lookUp">,
  input: FoundRequest,
  signal: AbortSignal,
): Promise<FoundRequest | { readonly index: number; readonly error: unknown }> {
  try {
    return { ...input, lookup: await composer.lookUp(input.request, signal) };
  } catch (error) {
    return { index: input.index, error };
  }
}

async function* windowsOf<T>(
  items: AsyncIterable<T> | Iterable<T>,
  size: number,
): AsyncGenerator<T[], void, undefined> {
  let window: T[] = [];
  for await (const item of items) {
    window.push(item);
    // Reading blocks the event loop: let other requests run.
    if (window.length % READ_AT_ONCE === 0) await setImmediate();
    if (window.length < size) continue;
    yield window;
    window = [];
  }
  if (window.length > 0) yield window;
}
