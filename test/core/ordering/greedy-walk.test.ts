import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { walkGreedily } from "../../../src/core/ordering/prefix-search.js";
import type { Label } from "../../../src/core/text/ids.js";
import {
  anyAnchor,
  anyEvents,
  anySequence,
  ELSEWHERE,
  HERE,
  labels,
  ServedSequences,
} from "../cache/served-sequences.js";

describe("greedy walk", () => {
  it("takes at each step the first wanted block that some served sequence goes on with", () => {
    const greedy = fc.property(anyEvents, anyAnchor, anySequence, (events, anchor, wanted) => {
      const served = ServedSequences.after(events);
      const path: Label[] = [];
      for (;;) {
        const next = wanted.find((block) => !path.includes(block) && served.holds(anchor, [...path, block]));
        if (next === undefined) break;
        path.push(next);
      }
      expect(walkGreedily(served.index.root(anchor), new Set(wanted)).labels).toEqual(path);
    });
    fc.assert(greedy, { numRuns: 500 });
  });

  it("names the node where it ends, also inside a run, and leaves the index as it is", () => {
    const served = new ServedSequences();
    served.serve(HERE, labels(7));
    served.serve(HERE, labels(1, 2, 3));
    served.serve(HERE, labels(1, 2, 4, 5));
    served.index.drain();
    expect(walkGreedily(served.index.root(HERE), new Set(labels(4, 2, 1)))).toEqual({
      labels: [1, 2, 4],
      searchPath: [1, 1],
    });
    expect(walkGreedily(served.index.root(HERE), new Set(labels(2, 4)))).toEqual({ labels: [], searchPath: [] });
    expect(walkGreedily(served.index.root(ELSEWHERE), new Set(labels(1)))).toEqual({ labels: [], searchPath: [] });
    expect(served.index.drain()).toEqual({ upserted: [], removed: [] });
  });
});
