/*
 * batch: many requests at once.
 * Enters: requests of any users, as one list or as a stream. Leaves: events in the plan's execution order: answers, failures, progress;
 * with a worker each where workers are named. Plans one window of requests at a time, and composes each request through the composer.
 */

import { setImmediate } from "node:timers/promises";
import { DEFAULT_BATCH_PLANNER, type ServicePlanner, type TokenCounter } from "../../core/index.js";
import type { ComposeAnswer } from "../base/call-types.js";
import type { PlanBatch } from "../base/memprefix-parts.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { PromptComposer } from "../compose/prompt-composer.js";
import type { PromptRouting } from "../compose/prompt-routing.js";
import { BatchBlocks, BatchRouting, type FoundRequest, planFound, type RoutableRequest } from "./batch-planning.js";

/** Most requests of one batch. */
export const MAX_BATCH = 10_000;
/** Requests planned together in a stream; only one window is in memory. */
export const DEFAULT_WINDOW = 1_000;
/** Concurrent memory searches of a batch. */
const SEARCHES_AT_ONCE = 8;
/** Requests read before the event loop is yielded. */
const READ_AT_ONCE = 32;

/** One request of a batch: valid, or an error. `index` is its position in the batch. */
export type BatchInput =
  | {
      readonly index: number;
      readonly request: ComposeRequest;
      readonly priority: number;
      readonly deadline: number | null;
    }
  | { readonly index: number; readonly error: unknown };

/** The progress of a batch, event by event. */
export type BatchEvent =
  | {
      readonly kind: "answer";
      readonly index: number;
      /** Execution order, from 0: send the prompts to the engine in this order. */
      readonly rank: number;
      /** The worker whose cache is expected to hold most of the prompt; null where none were named. */
      readonly worker: string | null;
      readonly answer: ComposeAnswer;
    }
  | { readonly kind: "failure"; readonly index: number; readonly error: unknown }
  | ({ readonly kind: "progress" } & BatchProgress)
  | ({ readonly kind: "end" } & BatchProgress);

export interface BatchProgress {
  /** Requests read. */
  readonly read: number;
  /** Requests whose memories were looked up. */
  readonly found: number;
  readonly composed: number;
  readonly failed: number;
}

/** What batches are planned and composed with: a user's requests one at a time, and every answer is stored. */
export interface BatchComposer {
  readonly composer: Pick<PromptComposer, "compose" | "known" | "clusterPaths" | "lookUp">;
  readonly routing: PromptRouting;
  /** Names of the workers where a batch names none; empty: no routing. */
  readonly workers: readonly string[];
  readonly countTokens: TokenCounter;
  readonly planning: PlanBatch;
}

export interface ComposeBatchOptions {
  /** Requests planned together. */
  readonly window: number;
  /** Names of workers to route to, each different; null: the configured ones. */
  readonly workers?: readonly string[] | null;
  /** Default: {@link DEFAULT_BATCH_PLANNER}. */
  readonly planner?: ServicePlanner | undefined;
  /** Stops the batch: answers given stay, nothing more is composed. */
  readonly signal: AbortSignal;
}

/**
 * Composes a batch (docs/internals/algorithms.md, "Batch planning"), window by window: looks up the memories of all its requests, plans them by
 * what should be cached then, and composes one prompt at a time in the plan's order. A request that fails is an event; the others continue. The last event is `end`.
 */
export async function* composeBatch(
  batches: BatchComposer,
  inputs: AsyncIterable<BatchInput> | Iterable<BatchInput>,
  { window, workers: given = null, planner = DEFAULT_BATCH_PLANNER, signal }: ComposeBatchOptions,
): AsyncGenerator<BatchEvent, void, undefined> {
  const { composer, countTokens, planning } = batches;
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
    yield { kind: "progress", ...progress };
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
      yield { kind: "progress", ...progress };
    }
    const blocks = new BatchBlocks(countTokens);
    const plan = await planFound(found, blocks, { planning, planner }, composer);
    const routed = (await routing?.route(plan, blocks)) ?? [];
    const processed: (RoutableRequest & { readonly worker: string })[] = [];
    for (const [at, { found: input, order, shared }] of plan.entries()) {
      // Other requests run between any two.
      await setImmediate();
      signal.throwIfAborted();
      const { index, lookup } = input;
      try {
        const request = { ...input.request, workers, worker: routed[at] ?? null };
        // The blocks that the plan places first are used where the request names no policy.
        const ahead = { lookup, front: order.slice(0, shared) };
        const answer = await composer.compose({ request, signal, found: ahead });
        const { worker = null } = answer;
        if (worker !== null) processed.push({ found: input, order, worker });
        yield { kind: "answer", index, rank: progress.composed, worker, answer };
        progress.composed++;
      } catch (error) {
        progress.failed++;
        yield { kind: "failure", index, error };
      }
    }
    await routing?.remember(processed);
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
    // Reading blocks too: let other requests run.
    if (window.length % READ_AT_ONCE === 0) await setImmediate();
    if (window.length < size) continue;
    yield window;
    window = [];
  }
  if (window.length > 0) yield window;
}
