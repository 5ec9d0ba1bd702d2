import { describe, expect, it } from "vitest";
import { snapshotIsDue } from "../../../src/store/journal/commits.js";

describe("a snapshot", () => {
  it.each([
    [{ records: 31, length: 1_000_000, snapshotLength: 0 }, false],
    [{ records: 32, length: 1, snapshotLength: 0 }, true],
    [{ records: 32, length: 99_999, snapshotLength: 100_000 }, false],
    [{ records: 32, length: 100_000, snapshotLength: 100_000 }, true],
    [{ records: 255, length: 1, snapshotLength: 100_000 }, false],
    [{ records: 256, length: 1, snapshotLength: 100_000 }, true],
  ])("with %o behind the last one is due: %s", (behind, isDue) => {
    expect(snapshotIsDue(behind)).toBe(isDue);
  });

  it("costs in all at most twice what the changes do and a 256th of the state each time, and a load reads at most as much beside it", () => {
    const each = 3_000;
    let [state, snapshotLength, records, length, written, most] = [0, 0, 0, 0, 0, 0];
    for (let n = 1; n <= 10_000; n++) {
      // Of a long life little is new.
      state += each / (1 + n / 100);
      [records, length] = [records + 1, length + each];
      most = Math.max(most, length - Math.max(snapshotLength, 32 * each));
      if (!snapshotIsDue({ records, length, snapshotLength })) continue;
      [snapshotLength, records, length] = [Math.round(state), 0, 0];
      written += snapshotLength;
    }
    expect(written).toBeGreaterThan(0);
    expect(written).toBeLessThanOrEqual(2 * 10_000 * each + (10_000 / 256) * state);
    expect(most).toBeLessThanOrEqual(each);
  });
});
