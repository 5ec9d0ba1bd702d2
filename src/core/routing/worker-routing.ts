/*
 * routing: which of several workers, engines or agents with a prefix cache of their own, gets a prompt.
 * Enters: the blocks of a prompt or of a batch's requests, which blocks each worker processed, its load. Leaves: a worker for each. This
 * file routes whole batches, `worker-choice.ts` single prompts.
 */

import type { BatchRequest } from "../batch/batch-request.js";
import type { Label } from "../text/ids.js";
import { largest } from "../text/lists.js";
import { chooseWorker, DEFAULT_SLACK } from "./worker-choice.js";

/** A worker, an engine or agent with its own prefix cache, as stored between batches. Plain JSON. */
export interface WorkerHistory {
  readonly name: string;
  /** Tokens assigned to it so far. */
  readonly tokens: number;
  /** By request key, the blocks that it processed, least recently processed first. */
  readonly processed: readonly { readonly key: string; readonly label: Label }[];
}

export interface RoutingOptions {
  /** How far above the mean the load of a worker may become, as a share, for it to get a request whose blocks it has processed. */
  readonly slack?: number | undefined;
  /** Maximum blocks remembered per worker, LRU: what its cache may hold. */
  readonly maxRemembered?: number | undefined;
}

export interface Routing {
  /** By request, the name of its worker. */
  readonly workers: readonly string[];
  /** Input of the next call. */
  readonly histories: readonly WorkerHistory[];
}

const DEFAULT_REMEMBERED = 100_000;

/**
 * Assigns each request to the worker that has processed most of its blocks, by tokens (agent-aware routing, as for a chain of agents);
 * ties, and requests whose blocks none has processed, go to the least busy worker, then by the order of `names`.
 *
 * Bound: afterwards no worker has more than (1 + slack) × the mean of all tokens assigned so far, plus the largest request; it holds across
 * batches while the workers stay the same. A worker without a history starts with the mean load of the others, so that it does not get
 * everything at first. The history of a worker that is not named is dropped. Pass requests in plan order, so that those with a common
 * prefix go to one worker. Deterministic: the same histories and requests give the same routing. O(workers × blocks).
 */
export function routeToWorkers(
  requests: readonly Pick<BatchRequest, "key" | "blocks">[],
  names: readonly string[],
  histories: readonly WorkerHistory[],
  { slack = DEFAULT_SLACK, maxRemembered = DEFAULT_REMEMBERED }: RoutingOptions = {},
): Routing {
  if (names.length === 0 || new Set(names).size !== names.length) {
    throw new RangeError("workers need names, each a different one");
  }
  const workers = recalled(names, histories);
  const sizes = requests.map(({ blocks }) => blocks.reduce((sum, { tokens }) => sum + tokens, 0));
  const assignedBefore = workers.reduce((sum, { tokens }) => sum + tokens, 0);
  const mean = sizes.reduce((sum, size) => sum + size, assignedBefore) / workers.length;
  // The bound allows one request on top: a worker at the limit may still get it.
  const most = (1 + slack) * mean + largest(sizes, 0);
  const assigned = requests.map((request, at) => {
    const size = sizes[at] ?? 0;
    const names = request.blocks.map(({ label, tokens }) => ({ name: nameOfBlock(request.key, label), tokens }));
    const candidates = workers.map((worker) => ({
      worker,
      name: worker.name,
      load: worker.tokens,
      held: heldOf(names, worker),
    }));
    const { worker } = chooseWorker(candidates, most - size);
    worker.tokens += size;
    remember(worker, request, maxRemembered);
    return worker.name;
  });
  return { workers: assigned, histories: workers.map(historyOf) };
}

interface Worker {
  readonly name: string;
  tokens: number;
  /** Processed blocks by key and label joined into one text; in LRU order, which a map keeps. */
  readonly processed: Map<string, { readonly key: string; readonly label: Label }>;
}

const nameOfBlock = (key: string, label: Label) => `${label} ${key}`;

function recalled(names: readonly string[], histories: readonly WorkerHistory[]): Worker[] {
  const known = new Map(histories.map((history) => [history.name, history]));
  const staying = names.flatMap((name) => known.get(name) ?? []);
  const mean = staying.reduce((sum, { tokens }) => sum + tokens, 0) / Math.max(1, staying.length);
  return names.map((name) => {
    const history = known.get(name);
    const processed = (history?.processed ?? []).map((block) => [nameOfBlock(block.key, block.label), block] as const);
    return { name, tokens: history?.tokens ?? mean, processed: new Map(processed) };
  });
}

/** Tokens of a request's blocks that a worker has processed. */
function heldOf(blocks: readonly { readonly name: string; readonly tokens: number }[], { processed }: Worker): number {
  return blocks.reduce((sum, { name, tokens }) => (processed.has(name) ? sum + tokens : sum), 0);
}

function remember(worker: Worker, { key, blocks }: Pick<BatchRequest, "key" | "blocks">, most: number): void {
  for (const { label } of blocks) {
    const name = nameOfBlock(key, label);
    worker.processed.delete(name);
    worker.processed.set(name, { key, label });
  }
  for (const oldest of worker.processed.keys()) {
    if (worker.processed.size <= most) break;
    worker.processed.delete(oldest);
  }
}

function historyOf({ name, tokens, processed }: Worker): WorkerHistory {
  return { name, tokens, processed: [...processed.values()] };
}
