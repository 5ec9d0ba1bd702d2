import { describe, expect, it } from "vitest";
import {
  NO_PUBLISHED_ROWS,
  PublishedKnowledge,
  type PublishedRows,
} from "../../../src/core/published/published-knowledge.js";
import { labels } from "../cache/served-sequences.js";
import { entriesOf, ticket } from "./clustered-contexts.js";

/** The rows of a scope that has used both kinds. */
function stored(): PublishedRows {
  const scope = new PublishedKnowledge(NO_PUBLISHED_ROWS, 1_000);
  scope.clusters.insert(labels(1, 2, 3), ticket(1), 1);
  scope.clusters.insert(labels(1, 2, 4), ticket(2), 2);
  scope.accesses.take(labels(1, 2, 3), ticket(1));
  return structuredClone(scope.stored());
}

describe("what the published policies keep of a scope", () => {
  it("is neither built, sized nor stored where no request asks for one", () => {
    const scope = new PublishedKnowledge(stored(), 1_000);
    expect(scope.weight).toBe(0);
    expect(scope.drain()).toBeNull();
    expect(scope.stored()).toEqual(stored());
  });

  it("is built when it is first asked for, and only the kind that is", () => {
    const scope = new PublishedKnowledge(stored(), 1_000);
    expect(scope.accesses.size).toBe(1);
    expect(scope.weight).toBe(600);
    expect(scope.drain()).toEqual({
      clusters: { upserted: [], removed: [] },
      accesses: { upserted: [], removed: [] },
    });
  });

  it("forgets and evicts what was stored, though nothing had asked for it", () => {
    const rows = stored();
    const forgetting = new PublishedKnowledge(rows, 1_000);
    forgetting.forget(new Set(labels(2)));
    expect(JSON.stringify(entriesOf(forgetting.clusters))).not.toContain("2,");
    expect(forgetting.accesses.countOf(labels(2)[0] as never)).toBe(0);
    expect(forgetting.drain()?.accesses.upserted).toHaveLength(1);
    const evicting = new PublishedKnowledge(rows, 1_000);
    evicting.evict(ticket(2));
    expect(evicting.clusters.search(labels(1, 2, 4)).blocks).not.toContain(4);
    expect(evicting.drain()).not.toBeNull();
  });
});
