import { type Digest, type Label, routeToWorkers } from "../../core/index.js";
import { type BatchBlocks, type BatchScope, scopeName } from "./batch-blocks.js";

/** Which blocks each worker has processed, per scope, by the digests of their texts, and how busy each is. */
export interface WorkerHistories {
  /** The workers to choose from; null: the configured ones. Empty: no routing. */
  namesFor(workers: readonly string[] | null): readonly string[];
  /** Recent tokens of some workers, of single requests and of every batch, in the order of the names. */
  loadsOf(names: readonly string[]): readonly number[];
  /** The blocks of a scope that each worker processed. */
  processedBy(scope: BatchScope, workers: readonly string[]): Promise<readonly (readonly Digest[])[]>;
  /** Records that a worker processes these. */
  remember(scope: BatchScope, worker: string, texts: readonly Digest[]): Promise<void>;
}

/** A request in execution order. */
export interface RoutableRequest {
  readonly found: { readonly request: BatchScope };
  /** Its blocks, by the digests of their texts. */
  readonly order: readonly Digest[];
}

/**
 * Routes the requests of one batch to workers, window by window: each to the worker that processed most of its blocks, in this batch or
 * before, balanced by the tokens that each got recently and those of the window (see `routeToWorkers` for the bound).
 */
export class BatchRouting {
  /** @param names at least one, each different */
  constructor(
    private readonly names: readonly string[],
    private readonly memory: WorkerHistories,
  ) {}

  /** The worker of each request. */
  async route(requests: readonly RoutableRequest[], blocks: BatchBlocks): Promise<readonly string[]> {
    const scopes = new Map(requests.map(({ found }) => [scopeName(found.request), found.request]));
    const loads = this.memory.loadsOf(this.names);
    const histories = this.names.map((name, at) => ({
      name,
      tokens: loads[at] ?? 0,
      processed: [] as { key: string; label: Label }[],
    }));
    for (const [key, scope] of scopes) {
      const byWorker = await this.memory.processedBy(scope, this.names);
      for (const [at, { processed }] of histories.entries()) {
        for (const text of byWorker[at] ?? []) {
          const label = blocks.find(key, text);
          if (label !== undefined) processed.push({ key, label });
        }
      }
    }
    const routable = requests.map(({ found, order }) => {
      const key = scopeName(found.request);
      return { key, blocks: order.map((text) => blocks.get(key, text)) };
    });
    return routeToWorkers(routable, this.names, histories).workers;
  }

  /** Records the composed requests' workers, for later batches. */
  async remember(composed: readonly (RoutableRequest & { readonly worker: string })[]): Promise<void> {
    const given = new Map<string, { scope: BatchScope; worker: string; texts: Set<Digest> }>();
    for (const { found, order, worker } of composed) {
      const key = `${scopeName(found.request)} ${worker}`;
      const known = given.get(key) ?? { scope: found.request, worker, texts: new Set() };
      given.set(key, known);
      for (const text of order) known.texts.add(text);
    }
    for (const { scope, worker, texts } of given.values()) await this.memory.remember(scope, worker, [...texts]);
  }
}
