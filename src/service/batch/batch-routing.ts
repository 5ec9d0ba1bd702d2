import { type Digest, routeToWorkers } from "../../core/index.js";
import { type BatchBlocks, type BatchScope, scopeName } from "./batch-blocks.js";

/** What is known of workers: by scope, what each processed, named by the digests of the texts. */
export interface WorkerHistories {
  /** What a worker processed of a scope. */
  processedBy(scope: BatchScope, worker: string): Iterable<Digest>;
  /** A worker was given these. */
  remember(scope: BatchScope, worker: string, texts: readonly Digest[]): Promise<void>;
}

/** A request in the order in which it is executed. */
export interface RoutableRequest {
  readonly found: { readonly request: BatchScope };
  /** Its blocks, named by the digests of their texts. */
  readonly order: readonly Digest[];
}

/**
 * Gives the requests of one batch to workers, window by window: each to the one that has processed most of its blocks, in this batch or
 * as its scope remembers, balanced by the tokens that this batch brings (see `routeToWorkers` for the bound).
 */
export class BatchRouting {
  #loads: ReadonlyMap<string, number>;

  /** `names`: each a different one, at least one. */
  constructor(
    private readonly names: readonly string[],
    private readonly memory: WorkerHistories,
  ) {
    this.#loads = new Map(names.map((name) => [name, 0]));
  }

  /** The workers of requests, one for each. */
  route(requests: readonly RoutableRequest[], blocks: BatchBlocks): readonly string[] {
    const scopes = new Map(requests.map(({ found }) => [scopeName(found.request), found.request]));
    const histories = this.names.map((name) => ({
      name,
      tokens: this.#loads.get(name) ?? 0,
      processed: [...scopes].flatMap(([key, scope]) =>
        [...this.memory.processedBy(scope, name)].flatMap((text) => {
          const label = blocks.find(key, text);
          return label === undefined ? [] : [{ key, label }];
        }),
      ),
    }));
    const routable = requests.map(({ found, order }) => {
      const key = scopeName(found.request);
      return { key, blocks: order.map((text) => blocks.get(key, text)) };
    });
    const { workers, histories: after } = routeToWorkers(routable, this.names, histories);
    this.#loads = new Map(after.map(({ name, tokens }) => [name, tokens]));
    return workers;
  }

  /** These were composed for their workers: later batches are to agree. */
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
