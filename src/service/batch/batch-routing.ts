import { type Digest, type Label, routeToWorkers } from "../../core/index.js";
import type { PromptRouting } from "../compose/prompt-routing.js";
import { type BatchBlocks, type BatchScope, scopeName } from "./batch-blocks.js";

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
    private readonly routing: PromptRouting,
  ) {}

  /** The worker of each request. */
  async route(requests: readonly RoutableRequest[], blocks: BatchBlocks): Promise<readonly string[]> {
    const scopes = new Map(requests.map(({ found }) => [scopeName(found.request), found.request]));
    const loads = this.routing.loadsOf(this.names);
    const histories = this.names.map((name, at) => ({
      name,
      tokens: loads[at] ?? 0,
      processed: [] as { key: string; label: Label }[],
    }));
    for (const [key, scope] of scopes) {
      const byWorker = await this.routing.processedBy(scope, this.names);
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
    for (const { scope, worker, texts } of given.values()) await this.routing.remember(scope, worker, [...texts]);
  }
}
