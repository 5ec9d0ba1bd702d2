import { describe, expect, it } from "vitest";
import type { Access } from "../../../src/core/published/access-frequency.js";
import type { ClusterNode } from "../../../src/core/published/cluster-node.js";
import { NO_PUBLISHED_ROWS, PublishedKnowledge } from "../../../src/core/published/published-knowledge.js";
import { labels } from "../context-index/served-sequences.js";
import { ticket } from "./clustered-contexts.js";

const unused = {
  clusters: (): never => {
    throw new Error("nothing asked for the cluster tree");
  },
  accesses: (): never => {
    throw new Error("nothing asked for the access window");
  },
};

/** The rows of a scope that has used both kinds, and how often they were read. */
function stored() {
  const scope = new PublishedKnowledge(NO_PUBLISHED_ROWS, 1_000);
  scope.clusters.insert(labels(1, 2, 3), ticket(1), 1);
  scope.clusters.insert(labels(1, 2, 4), ticket(2), 2);
  scope.accesses.take(labels(1, 2, 3), ticket(1));
  const changes = scope.drain();
  const reads = { clusters: 0, accesses: 0 };
  const rows = {
    clusters: (): readonly ClusterNode[] => {
      reads.clusters++;
      return structuredClone(changes?.clusters.upserted ?? []);
    },
    accesses: (): readonly Access[] => {
      reads.accesses++;
      return structuredClone(changes?.accesses.upserted ?? []);
    },
  };
  return { rows, reads };
}

describe("what the published policies keep of a scope", () => {
  it("is neither read, sized nor stored where no request asks for one", () => {
    const scope = new PublishedKnowledge(unused, 1_000);
    expect(scope.weight).toBe(0);
    expect(scope.drain()).toBeNull();
  });

  it("is read once, when it is first asked for, and only the kind that is", () => {
    const { rows, reads } = stored();
    const scope = new PublishedKnowledge(rows, 1_000);
    expect(scope.accesses.size).toBe(1);
    expect(scope.accesses.size).toBe(1);
    expect(reads).toEqual({ clusters: 0, accesses: 1 });
    expect(scope.drain()).toEqual({
      clusters: { upserted: [], removed: [] },
      accesses: { upserted: [], removed: [] },
    });
  });

  it("forgets and evicts what was stored, though nothing had asked for it", () => {
    const { rows } = stored();
    const forgetting = new PublishedKnowledge(rows, 1_000);
    forgetting.forget(new Set(labels(2)));
    expect(JSON.stringify(forgetting.clusters.entries(100))).not.toContain("2,");
    expect(forgetting.accesses.countOf(labels(2)[0] as never)).toBe(0);
    expect(forgetting.drain()?.accesses.upserted).toHaveLength(1);
    const evicting = new PublishedKnowledge(rows, 1_000);
    evicting.evict(ticket(2));
    expect(evicting.clusters.search(labels(1, 2, 4)).blocks).not.toContain(4);
    expect(evicting.drain()).not.toBeNull();
  });

  it("asks a scope without rows for them once, however much is evicted", () => {
    let reads = 0;
    const none = {
      ...NO_PUBLISHED_ROWS,
      clusters: () => {
        reads++;
        return [];
      },
    };
    const scope = new PublishedKnowledge(none, 1_000);
    scope.evict(ticket(1));
    scope.evict(ticket(2));
    scope.forget(new Set(labels(1)));
    expect(reads).toBe(1);
    expect(scope.drain()).toBeNull();
  });
});
