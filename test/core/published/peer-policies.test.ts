import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/context-index/context-index.js";
import { type OrderingRequest, RecentRetrievals, retrieval, sorted } from "../../../src/core/ordering/ordering.js";
import {
  accessFrequency,
  contextPilot,
  cpTree,
  knowledgeTree,
  NO_PUBLISHED_ROWS,
  PublishedKnowledge,
  type ScopePolicy,
  type WithPublished,
} from "../../../src/core/published/published-knowledge.js";
import type { Label } from "../../../src/core/text/ids.js";
import { ELSEWHERE, HERE, labels } from "../context-index/served-sequences.js";
import { anyContext, ticket } from "./clustered-contexts.js";

const PEERS: readonly ScopePolicy[] = [retrieval, sorted, contextPilot, knowledgeTree, accessFrequency, cpTree];

/** What a scope knows, and the composes that taught it. */
class Taught {
  readonly known: WithPublished = {
    index: new ContextIndex([], 1, 1_000),
    published: new PublishedKnowledge(NO_PUBLISHED_ROWS, 1_000),
    recent: new RecentRetrievals([]),
  };
  #turns = 0;

  /** Orders a request and takes it in, as a compose does. */
  serve(policy: ScopePolicy, context: readonly Label[]): readonly Label[] {
    const request = requestFor(context);
    const ordering = policy.order(request, this.known);
    const turn = ticket(++this.#turns);
    this.known.index.insert(request.anchor, ordering.labels, turn);
    policy.learn?.(request, ordering, this.known, turn);
    return ordering.labels;
  }

  static by(policy: ScopePolicy, contexts: readonly (readonly Label[])[]): Taught {
    const taught = new Taught();
    for (const context of contexts) taught.serve(policy, context);
    return taught;
  }
}

function requestFor(context: readonly Label[]): OrderingRequest {
  return { anchor: HERE, retrieved: context.map((label) => ({ label, tokens: 3 })), carrying: null };
}

const anyLife = fc.array(anyContext, { maxLength: 15 });

describe.each(PEERS.map((policy) => ({ name: policy.name, policy })))("peer policy $name", ({ policy }) => {
  it("gives every retrieved block once, carries nothing, and is deterministic", () => {
    const orders = fc.property(anyLife, anyContext, (life, context) => {
      const ordering = policy.order(requestFor(context), Taught.by(policy, life).known);
      expect([...ordering.labels].sort()).toEqual([...context].sort());
      expect(ordering.carried).toEqual(new Set());
      expect(policy.order(requestFor(context), Taught.by(policy, life).known)).toEqual(ordering);
    });
    fc.assert(orders);
  });

  it("leaves what the scope knows as it is when it orders", () => {
    const reads = fc.property(anyLife, anyContext, (life, context) => {
      const { known } = Taught.by(policy, life);
      for (const part of [known.index, known.published.clusters, known.published.accesses]) part.drain();
      policy.order(requestFor(context), known);
      for (const part of [known.index, known.published.clusters, known.published.accesses]) {
        expect(part.drain()).toEqual({ upserted: [], removed: [] });
      }
    });
    fc.assert(reads);
  });

  it("orders nothing into nothing, and learns it", () => {
    const taught = Taught.by(policy, [labels(1, 2)]);
    expect(taught.serve(policy, [])).toEqual([]);
    expect(policy.order(requestFor([]), taught.known)).toMatchObject({ labels: [], searchPath: [] });
  });
});

describe("peer policies", () => {
  it("retrieval leaves the order alone, sorted goes by label", () => {
    const { known } = Taught.by(retrieval, [labels(1, 2, 3)]);
    expect(retrieval.order(requestFor(labels(3, 9, 1)), known).labels).toEqual([3, 9, 1]);
    expect(sorted.order(requestFor(labels(30, 9, 100)), known).labels).toEqual([9, 30, 100]);
  });

  it("retrieval, context-pilot, knowledge-tree and access-frequency leave the order alone where nothing was served", () => {
    for (const policy of PEERS.filter((peer) => peer !== sorted)) {
      expect(new Taught().serve(policy, labels(5, 2, 9))).toEqual([5, 2, 9]);
    }
  });

  it("context-pilot puts first what the best matching node has, and names that node", () => {
    const { known } = Taught.by(contextPilot, [labels(2, 1, 3), labels(2, 6, 1)]);
    expect(contextPilot.order(requestFor(labels(4, 1, 2)), known)).toMatchObject({
      labels: [2, 1, 4],
      searchPath: [0],
    });
  });

  it("knowledge-tree puts first what was served behind the same prefix, and names the node where it ends", () => {
    const { known } = Taught.by(retrieval, [labels(3, 2, 1, 4), labels(9, 1, 2, 3, 5)]);
    const request = requestFor(labels(1, 2, 3, 5));
    expect(knowledgeTree.order(request, known)).toMatchObject({ labels: [3, 2, 1, 5], searchPath: [0] });
    const elsewhere = { ...request, anchor: ELSEWHERE };
    expect(knowledgeTree.order(elsewhere, known)).toMatchObject({ labels: [1, 2, 3, 5], searchPath: [] });
  });

  it("access-frequency puts first what many requests accessed", () => {
    const { known } = Taught.by(accessFrequency, [labels(1, 2), labels(3, 2), labels(2, 4), labels(4)]);
    expect(accessFrequency.order(requestFor(labels(1, 4, 2)), known).labels).toEqual([2, 4, 1]);
  });
});
