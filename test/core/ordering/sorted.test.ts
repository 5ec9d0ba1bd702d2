import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sorted } from "../../../src/core/ordering/ordering.js";
import { anyLife, anyRequest, ServedSequences } from "../cache/served-sequences.js";

describe("the sorted order", () => {
  it("is by label, whatever was served and in whatever order the blocks were retrieved", () => {
    const byLabel = fc.property(anyLife, anyRequest, (life, request) => {
      const { known } = ServedSequences.composedBy(sorted, life);
      const retrieved = request.retrieved.map(({ label }) => label);
      expect(sorted.order(request, known).labels).toEqual([...retrieved].sort((a, b) => a - b));
    });
    fc.assert(byLabel);
  });
});
