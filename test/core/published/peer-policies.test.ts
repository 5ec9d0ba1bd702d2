import { describe, expect, it } from "vitest";
import { ContextIndex } from "../../../src/core/cache/context-index.js";
import { type OrderingRequest, RecentRetrievals, retrieval, sorted } from "../../../src/core/ordering/ordering.js";
import {
  NO_PUBLISHED_ROWS,
  PublishedKnowledge,
  type ScopePolicy,
  type WithPublished,
} from "../../../src/core/published/published-knowledge.js";
import type { Label } from "../../../src/core/text/ids.js";
import { HERE, labels } from "../cache/served-sequences.js";
import { ticket } from "./clustered-contexts.js";

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

describe("peer policies", () => {
  it("retrieval leaves the order alone, sorted goes by label", () => {
    const { known } = Taught.by(retrieval, [labels(1, 2, 3)]);
    expect(retrieval.order(requestFor(labels(3, 9, 1)), known).labels).toEqual([3, 9, 1]);
    expect(sorted.order(requestFor(labels(30, 9, 100)), known).labels).toEqual([9, 30, 100]);
  });
});
