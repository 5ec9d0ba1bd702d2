import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { walkGreedily } from "../../../src/core/ordering/prefix-search.js";
import type { Label } from "../../../src/core/text/ids.js";
import { anyAnchor, anyEvents, anySequence, ServedSequences } from "../cache/served-sequences.js";

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
});
