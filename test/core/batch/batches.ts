import fc from "fast-check";
import type { BatchRequest } from "../../../src/core/batch/batch-plan.js";
import { label } from "../cache/served-sequences.js";

/** Requests of up to three keys that all use the same labels, some of them turns of conversations. */
export const anyBatch: fc.Arbitrary<BatchRequest[]> = fc.array(
  fc.record(
    {
      key: fc.constantFrom("ana", "ben", "cho"),
      blocks: fc
        .uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 8 })
        .map((blocks) => blocks.map((block) => ({ label: label(block), tokens: 5 + ((block * 7) % 30) }))),
      conversation: fc.constantFrom("x", "y"),
    },
    { requiredKeys: ["key", "blocks"] },
  ),
  { maxLength: 20, size: "max" },
);

/** The same without conversations. */
export const anyPlainBatch = anyBatch.map((batch) => batch.map(({ key, blocks }) => ({ key, blocks })));
