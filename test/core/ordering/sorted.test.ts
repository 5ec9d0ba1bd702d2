import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { retrieval, sorted } from "../../../src/core/ordering/ordering.js";
import { anyLife, anyRequest, ServedSequences } from "../cache/served-sequences.js";

describe("orders without knowledge of the scope", () => {
  it("are by label, or as the blocks were retrieved, whatever was served", () => {
    const byLabel = fc.property(anyLife, anyRequest, (life, request) => {
      const { known } = ServedSequences.composedBy(sorted, life);
      const retrieved = request.retrieved.map(({ label }) => label);
      expect(sorted.order(request, known).labels).toEqual([...retrieved].sort((a, b) => a - b));
      expect(retrieval.order(request, known).labels).toEqual(retrieved);
    });
    fc.assert(byLabel);
  });
});
