import {
  type BatchPlanner,
  type BatchRequest,
  type ClusteredKey,
  ContextIndex,
  DEFAULT_BATCH_PLANNER,
  type Digest,
  groupBy,
  type KeyKnowledge,
  type Label,
  planBatch,
  prefixExact,
  RecentRetrievals,
  type ScopeKnowledge,
  type TurnId,
  usablePaths,
} from "../src/core/index.js";
import { orderAfter } from "../src/core/ordering/ordering.js";
import type { ExecutedRequest } from "./recorded-batch.js";

/** Nodes of a user's context index. */
const MAX_NODES = 20_000;

/**
 * Executes requests in batches of `size`, one batch after the other, as the service does: each is planned from what the batches before it
 * left in their users' indexes, and what the plan leaves open is ordered by `prefix-exact` when its turn comes. `size` null: no plan, every
 * request by `prefix-exact` in the order in which they came. Nothing is evicted from the indexes. `context-pilot` goes on from each user's tree, as
 * the service does; `trees` null: it plans each batch by itself.
 *
 * @param arrivals indices of requests in the order in which they come; default: as they are listed
 */
export function executedLive(
  listed: readonly BatchRequest[],
  size: number | null,
  planner: BatchPlanner = DEFAULT_BATCH_PLANNER,
  arrivals: readonly number[] = [...listed.keys()],
  trees: Map<string, ClusteredKey> | null = new Map(),
): readonly ExecutedRequest[] {
  const requests = arrivals.map((at) => listed[at] as BatchRequest);
  const scopes = new Map<string, UserScope>();
  const scopeOf = (request: number): UserScope => {
    const { key = "" } = requests[request] ?? {};
    const scope = scopes.get(key) ?? new UserScope(key);
    scopes.set(key, scope);
    return scope;
  };
  const executed: ExecutedRequest[] = [];
  const execute = (request: number, front: readonly Label[]) => {
    executed.push({
      request: arrivals[request] ?? 0,
      order: scopeOf(request).serve(requests[request] as BatchRequest, front),
    });
  };
  if (size === null) {
    for (const request of requests.keys()) execute(request, []);
    return executed;
  }
  for (let from = 0; from < requests.length; from += size) {
    const batch = requests.slice(from, from + size);
    const knowledge = [...groupBy(batch.keys(), (at) => batch[at]?.key)].map(([, ofKey]) =>
      scopeOf(from + (ofKey[0] ?? 0)).knownFor(ofKey.map((at) => batch[at] as BatchRequest)),
    );
    const plan = planBatch(batch, planner, knowledge, [...(trees?.values() ?? [])]);
    for (const tree of plan.trees) trees?.set(tree.key, tree);
    for (const { request, order, shared } of plan.requests) execute(from + request, order.slice(0, shared));
  }
  return executed;
}

/** What the scope of some requests knows for planning a batch of one key, once they were served one by one. */
export function knownAfter(served: readonly BatchRequest[], batch: readonly BatchRequest[]): KeyKnowledge {
  const scope = new UserScope(batch[0]?.key ?? "");
  for (const request of served) scope.serve(request, []);
  return scope.knownFor(batch);
}

/** What is known of one user, whose prompts all have the same bytes before the blocks. */
class UserScope {
  readonly #known: ScopeKnowledge = { index: new ContextIndex([], 1, MAX_NODES), recent: new RecentRetrievals([]) };
  readonly #anchor: Digest;
  #clock = 0;

  constructor(private readonly key: string) {
    this.#anchor = key as Digest;
  }

  knownFor(requests: readonly BatchRequest[]): KeyKnowledge {
    const { index, recent } = this.#known;
    const wanted = requests.map(({ blocks }) => new Set(blocks.map(({ label }) => label)));
    return {
      key: this.key,
      cached: usablePaths(index.root(this.#anchor), wanted).map(({ labels }) => labels),
      recent: [...recent.sets()].map((set) => [...set]),
    };
  }

  /** Orders a request's blocks behind those that the plan placed, and serves it. */
  serve({ blocks: retrieved }: BatchRequest, front: readonly Label[]): readonly Label[] {
    const { index, recent } = this.#known;
    const request = { anchor: this.#anchor, retrieved, carrying: null };
    const order =
      front.length === 0
        ? prefixExact.order(request, this.#known).labels
        : [...front, ...orderAfter(front, request, this.#known)];
    index.insert(this.#anchor, order, ++this.#clock);
    recent.take(
      retrieved.map(({ label }) => label),
      this.#clock as TurnId,
    );
    return order;
  }
}
