import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packBatch, packPlan, unpackBatch, unpackPlan } from "../../src/cli/threaded-planning.js";
import { type BatchRequest, type Label, planBatch } from "../../src/core/index.js";

const anyRequest: fc.Arbitrary<BatchRequest> = fc.record(
  {
    key: fc.constantFrom("ana", "bo"),
    blocks: fc
      .uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 6 })
      .map((labels) => labels.map((label) => ({ label: label as Label, tokens: 10 + label }))),
    conversation: fc.constantFrom("c", "d"),
  },
  { requiredKeys: ["key", "blocks"] },
);

describe("a batch between threads", () => {
  it("arrives as it was sent, and so does its plan", () => {
    fc.assert(
      fc.property(fc.array(anyRequest, { maxLength: 12 }), (requests) => {
        const sent = structuredClone(packBatch(requests));
        expect(unpackBatch(sent)).toEqual(requests);
        const plan = planBatch(requests).requests;
        expect(unpackPlan(structuredClone(packPlan(plan)))).toEqual(plan);
        expect(planBatch(unpackBatch(sent)).requests).toEqual(plan);
      }),
    );
  });
});
