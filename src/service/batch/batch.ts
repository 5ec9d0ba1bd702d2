import { setImmediate } from "node:timers/promises";
import type { Digest, TokenCounter } from "../../core/index.js";
import type { BatchPlanner } from "../base/memstem-parts.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { WaitingLookup } from "../compose/memory-lookup.js";
import { BatchBlocks } from "./batch-blocks.js";
import { type FoundRequest, planFound } from "./batch-planning.js";
import { BatchRouting, type RoutableRequest, type WorkerMemory } from "./batch-routing.js";

/** Most requests of one batch. */
export const MAX_BATCH = 10_000;
/** Requests that are planned together where they come as a stream; what one window holds is all that is in memory. */
export const DEFAULT_WINDOW = 1_000;
/** Memory searches of a batch that run side by side. */
const SEARCHES_AT_ONCE = 8;
/** Requests that are read before others get their turn. */
const READ_AT_ONCE = 32;

/** One request of a batch as it came: read, or found to be none. `index` is its place in the batch. */
export type BatchInput =
  | {
      readonly index: number;
      readonly request: ComposeRequest;
      readonly priority: number;
      readonly deadline: number | null;
    }
  | { readonly index: number; readonly error: unknown };

/** What becomes of a batch, as it happens. */
export type BatchEvent =
  | {
      readonly kind: "answer";
      readonly index: number;
      /** When it was executed, from 0: send the prompts to the engine in this order. */
      readonly rank: number;
      /** Whose cache is expected to hold most of it; null where no workers were named. */
      readonly worker: string | null;
      readonly answer: ComposeAnswer;
    }
  | { readonly kind: "failure"; readonly index: number; readonly error: unknown }
  | ({ readonly kind: "progress" } & BatchProgress)
  | ({ readonly kind: "end" } & BatchProgress);

export interface BatchProgress {
  /** Requests that came. */
  readonly read: number;
  /** Of them, those whose memories are at hand. */
  readonly found: number;
  readonly composed: number;
  readonly failed: number;
}

/** What a batch is composed with: one user's requests are still done one after the other, and every answer is stored. */
export interface BatchComposer {
  readonly countTokens: TokenCounter;
  readonly planning: BatchPlanner;
  lookUp(request: ComposeRequest, signal: AbortSignal): Promise<WaitingLookup>;
  /** `order`: the plan's, used where the request names no policy. */
  readonly workers: WorkerMemory;
  composeFound(
    request: ComposeRequest,
    lookup: WaitingLookup,
    order: readonly Digest[],
    signal: AbortSignal,
  ): Promise<ComposeAnswer>;
}

export interface BatchOptions {
  /** Requests that are planned together. */
  readonly window: number;
  /** Workers to give the requests to, by name, each a different one; none: nothing is routed. */
  readonly workers?: readonly string[] | undefined;
  /** Stops the batch: what was answered stays, nothing more is composed. */
  readonly signal: AbortSignal;
}

/**
 * Composes a batch (docs/internals/algorithms.md, "Batch planning"): the memories of all its requests first, then a plan for all of them,
 * then one prompt after the other in the plan's order. A request that fails is an event in its own place; the others go on. Ends with what
 * it came to. Holds one window of requests in memory, however long the batch.
 */
export async function* composeBatch(
  composer: BatchComposer,
  inputs: AsyncIterable<BatchInput> | Iterable<BatchInput>,
  { window, workers = [], signal }: BatchOptions,
): AsyncGenerator<BatchEvent, void, undefined> {
  const routing = workers.length === 0 ? null : new BatchRouting(workers, composer.workers);
  const progress = { read: 0, found: 0, composed: 0, failed: 0 };
  for await (const some of windowsOf(inputs, window)) {
    const readable: FoundInput[] = [];
    for (const input of some) {
      progress.read++;
      if ("error" in input) {
        progress.failed++;
        yield { kind: "failure", index: input.index, error: input.error };
      } else readable.push({ ...input, lookup: { found: [] } });
    }
    yield { kind: "progress", ...progress };
    const found: FoundInput[] = [];
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
    const blocks = new BatchBlocks(composer.countTokens);
    const plan = await planFound(found, blocks, composer.planning);
    const routed = routing?.route(plan, blocks) ?? [];
    const processed: (RoutableRequest & { readonly worker: string })[] = [];
    for (const [at, { found: input, order }] of plan.entries()) {
      // Others' requests get their turn between any two.
      await setImmediate();
      signal.throwIfAborted();
      const { index, request, lookup } = input;
      try {
        const answer = await composer.composeFound(request, lookup, order, signal);
        const worker = routed[at] ?? null;
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

type FoundInput = FoundRequest & { readonly index: number };

async function lookedUp(
  composer: BatchComposer,
  input: FoundInput,
  signal: AbortSignal,
): Promise<FoundInput | { readonly index: number; readonly error: unknown }> {
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
    // Reading is work too: others' requests get their turn.
    if (window.length % READ_AT_ONCE === 0) await setImmediate();
    if (window.length < size) continue;
    yield window;
    window = [];
  }
  if (window.length > 0) yield window;
}
