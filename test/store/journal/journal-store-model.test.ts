import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anySteps, SCOPES, StorePair } from "./store-pair.js";

/** How often each property walks; more by hand: each walk does whole composes in two stores and compares every answer. */
const WALKS = Number(process.env["WALKS"] ?? 12);

/** Walks both stores through some steps, and gives how many snapshots the journal has had when they were compared. */
async function walked(steps: Parameters<StorePair["walk"]>[0], stepsBetween: number): Promise<number> {
  const pair = new StorePair();
  try {
    await pair.walk(steps, stepsBetween);
    return pair.snapshots;
  } finally {
    await pair.close();
  }
}

describe("a journal, beside the model", () => {
  it("answers every question alike, whatever was done, and keeps nothing of what was forgotten", async () => {
    const steps = anySteps(SCOPES, { minLength: 1, maxLength: 24 });
    await fc.assert(
      fc.asyncProperty(steps, async (list) => void (await walked(list, 8))),
      { numRuns: WALKS },
    );
  }, 300_000);

  it("does so through snapshots", async () => {
    let snapshots = 0;
    const steps = anySteps(SCOPES.slice(0, 1), { minLength: 45, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        // A scope that ends has none.
        const lasting = list.filter(([name]) => !name.startsWith("delete"));
        snapshots += await walked(lasting, 10);
      }),
      { numRuns: Math.ceil(WALKS / 2) },
    );
    expect(snapshots).toBeGreaterThan(0);
  }, 300_000);
});
