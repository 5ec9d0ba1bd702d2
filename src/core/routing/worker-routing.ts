/* routing: which worker gets a prompt. Enters: blocks, and what each worker processed. Leaves: a worker for each prompt. */

import type { BatchRequest } from "../batch/batch-plan.js";
import { ChangedRows, LruMap, largest, type RowChanges, smallest } from "../text/collections.js";
import type { Label } from "../text/ids.js";

/** What is known of a worker before a batch. Blocks are unique with their request's key. */
export interface BatchWorker {
  readonly name: string;
  /** Its load. */
  readonly tokens: number;
  readonly processed: readonly { readonly key: string; readonly label: Label }[];
}

/**
 * Assigns each request to the worker that processed most of its blocks, by tokens; ties go to the least busy one. Returns names. Pass requests in
 * plan order, so that those with a common prefix go to one worker. Deterministic. O(workers × blocks).
 *
 * Bound: no worker exceeds (1 + {@link SLACK}) × the mean load after the batch, plus the largest request.
 */
export function routeToWorkers(
  requests: readonly Pick<BatchRequest, "key" | "blocks">[],
  known: readonly BatchWorker[],
): readonly string[] {
  const nameOf = (key: string, label: Label) => `${label} ${key}`;
  const workers = known.map(({ name, tokens, processed }) => ({
    name,
    load: tokens,
    processed: new Set(processed.map(({ key, label }) => nameOf(key, label))),
  }));
  const sizes = requests.map(({ blocks }) => blocks.reduce((sum, { tokens }) => sum + tokens, 0));
  const loadBefore = workers.reduce((sum, { load }) => sum + load, 0);
  const mean = sizes.reduce((sum, size) => sum + size, loadBefore) / workers.length;
  // The bound allows one request on top: a worker at the limit may still get it.
  const most = (1 + SLACK) * mean + largest(sizes, 0);
  return requests.map(({ key, blocks }, at) => {
    const size = sizes[at] ?? 0;
    const names = blocks.map(({ label, tokens }) => ({ name: nameOf(key, label), tokens }));
    const candidates = workers.map((worker) => {
      const held = names.reduce((sum, { name, tokens }) => (worker.processed.has(name) ? sum + tokens : sum), 0);
      return { worker, load: worker.load, held };
    });
    const { worker } = chooseWorker(candidates, most - size);
    worker.load += size;
    for (const { name } of names) worker.processed.add(name);
    return worker.name;
  });
}

/** Maximum load above the mean, as a share of it, for a worker to get a request for the sake of its blocks. */
const SLACK = 0.1;
/** The same in tokens, for single requests: with little load, one request more is no overload. */
const LEAD_TOKENS = 8_192;
/** Price of a token of load above the least loaded worker's, in tokens held. */
const LOAD_PRICE = 0.05;
/** After this time a token counts half as load, because an engine has processed old prompts. */
const HALF_LIFE_MS = 10_000;
/** Maximum workers of one tenant whose load is known, LRU. */
const MAX_LOADS = 1_024;

interface Candidate {
  readonly load: number;
  /** Tokens of the request that the worker has processed, less what its load costs. */
  readonly held: number;
}

/** The worker that holds most, among those with at most `mostLoad`; if all are above it, the least loaded. Expects a candidate. */
function chooseWorker<C extends Candidate>(candidates: readonly C[], mostLoad: number): C {
  const within = candidates.filter(({ load }) => load <= mostLoad);
  if (within.length === 0) return candidates.reduce((least, other) => (other.load < least.load ? other : least));
  return within.reduce((best, other) => {
    const isBetter = other.held > best.held || (other.held === best.held && other.load < best.load);
    return isBetter ? other : best;
  });
}

/** Recent tokens of a tenant's workers, halved every {@link HALF_LIFE_MS}. In memory only. */
export class WorkerLoads {
  readonly #loads = new LruMap<string, { readonly tokens: number; readonly at: number }>(MAX_LOADS);

  /** @param now milliseconds */
  add(name: string, tokens: number, now: number): void {
    const [before = 0] = this.of([name], now);
    this.#loads.set(name, { tokens: before + tokens, at: now });
  }

  /** In the order of `names`; 0 for an unknown worker. */
  of(names: readonly string[], now: number): readonly number[] {
    return names.map((name) => {
      const load = this.#loads.get(name);
      return load === undefined ? 0 : decayed(load, now);
    });
  }
}

/** A clock that was set back changes nothing. */
function decayed({ tokens, at }: { readonly tokens: number; readonly at: number }, now: number): number {
  return tokens * 2 ** (-Math.max(0, now - at) / HALF_LIFE_MS);
}

export interface RoutedPrompt {
  readonly tokens: number;
  /** Blocks that this prompt adds to its history. */
  readonly blocks: readonly { readonly label: Label; readonly tokens: number }[];
  /** The worker of the conversation's previous prompt, and the tokens of this one that it has cached. */
  readonly history: { readonly worker: string; readonly tokens: number } | null;
}

/**
 * Chooses one prompt's worker: the one that holds most of its tokens, less {@link LOAD_PRICE} of its load above the least loaded. Skips overloaded
 * ones: over 10 % and {@link LEAD_TOKENS} above the mean. A conversation is held by its history alone. `now`: milliseconds.
 */
export function routePrompt(
  { tokens, blocks, history }: RoutedPrompt,
  names: readonly string[],
  processedBy: Pick<WorkerBlocks, "of">,
  loads: Pick<WorkerLoads, "of">,
  now: number,
): string {
  const heldBy = (name: string): number => {
    if (history !== null) return name === history.worker ? history.tokens : 0;
    const processed = processedBy.of(name);
    return blocks.reduce((sum, block) => (processed.has(block.label) ? sum + block.tokens : sum), 0);
  };
  const before = loads.of(names, now);
  const least = smallest(before);
  const candidates = names.map((name, at) => {
    const load = before[at] ?? 0;
    return { name, load, held: heldBy(name) - LOAD_PRICE * (load - least) };
  });
  const mean = before.reduce((sum, load) => sum + load, tokens) / names.length;
  return chooseWorker(candidates, (1 + SLACK) * mean + LEAD_TOKENS).name;
}

/** Maximum workers per scope, LRU. */
export const MAX_WORKERS = 64;
export const MAX_WORKER_BLOCKS = 2_000;

export interface WorkerRow {
  readonly id: number;
  readonly name: string;
  readonly labels: readonly Label[];
}

export class WorkerBlocks {
  readonly #workers = new Map<string, { readonly id: number; readonly labels: Set<Label> }>();
  readonly #changes = new ChangedRows<number>();
  #nextId: number;

  constructor(rows: readonly WorkerRow[]) {
    for (const { id, name, labels } of rows) this.#workers.set(name, { id, labels: new Set(labels) });
    this.#nextId = rows.reduce((most, { id }) => Math.max(most, id), 0) + 1;
  }

  get size(): number {
    return this.#workers.size;
  }

  get weight(): number {
    let weight = 0;
    for (const { labels } of this.#workers.values()) weight += 500 + 50 * labels.size;
    return weight;
  }

  of(name: string): ReadonlySet<Label> {
    return this.#workers.get(name)?.labels ?? new Set();
  }

  take(name: string, labels: readonly Label[]): void {
    const known = this.#workers.get(name);
    const processed = known?.labels ?? new Set();
    for (const label of labels) {
      processed.delete(label);
      processed.add(label);
    }
    for (const oldest of processed) {
      if (processed.size <= MAX_WORKER_BLOCKS) break;
      processed.delete(oldest);
    }
    // A new id per use preserves LRU order across a reload.
    if (known !== undefined) this.#remove(name, known.id);
    this.#changes.written(this.#nextId);
    this.#workers.set(name, { id: this.#nextId++, labels: processed });
    for (const [oldest, { id }] of this.#workers) {
      if (this.#workers.size <= MAX_WORKERS) break;
      this.#remove(oldest, id);
    }
  }

  forget(gone: ReadonlySet<Label>): void {
    for (const [name, { id, labels }] of [...this.#workers]) {
      const before = labels.size;
      for (const label of gone) labels.delete(label);
      if (labels.size === before) continue;
      if (labels.size === 0) this.#remove(name, id);
      else this.#changes.written(id);
    }
  }

  drain(): RowChanges<number, WorkerRow> {
    const rows = new Map(this.stored().map((row) => [row.id, row]));
    return this.#changes.drain((id) => rows.get(id));
  }

  /** In LRU order; later changes do not reach it. */
  stored(): WorkerRow[] {
    return Array.from(this.#workers, ([name, { id, labels }]) => ({ id, name, labels: [...labels] }));
  }

  #remove(name: string, id: number): void {
    this.#workers.delete(name);
    this.#changes.removed(id);
  }
}
