import { setTimeout } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Gathering } from "../../../src/store/postgres/group-writer.js";

describe("commits that wait for each other", () => {
  let over = 0;
  let gathering: Gathering | undefined;
  /** Whether a thread that was busy for such a share of its time gathers. */
  const busyFor = (share: number) => {
    over = 0;
    const some = (utilization: number) => ({ idle: 1 - utilization, active: utilization, utilization });
    gathering = new Gathering(
      () => over++,
      () => some(share),
    );
    return gathering;
  };
  afterEach(() => gathering?.end());

  it("are half of those under way, on a busy thread", () => {
    const busy = busyFor(0.9);
    busy.begin(12, 2);
    expect([2, 6, 7].map((waiting) => busy.isOn(waiting))).toEqual([true, true, false]);
    // Until the next group has ended whoever comes goes at once.
    expect(busy.isOn(1)).toBe(false);
  });

  it("are all that there are where these are half", () => {
    const busy = busyFor(0.9);
    busy.begin(8, 8);
    expect(busy.isOn(8)).toBe(false);
    busy.begin(1, 0);
    expect(busy.isOn(1)).toBe(false);
  });

  it("are none on a thread that has time", () => {
    const idle = busyFor(0.5);
    idle.begin(12, 2);
    expect(idle.isOn(2)).toBe(false);
  });

  it("wait no longer than for some milliseconds, and say when that is over", async () => {
    const busy = busyFor(1);
    busy.begin(12, 1);
    expect(busy.isOn(1)).toBe(true);
    const since = performance.now();
    while (over === 0) await setTimeout(1);
    expect(performance.now() - since).toBeGreaterThanOrEqual(4);
    expect(busy.isOn(1)).toBe(false);
    expect(over).toBe(1);
  });

  it("wait no longer when told so, and nothing is said then", async () => {
    const busy = busyFor(1);
    busy.begin(12, 1);
    busy.end();
    expect(busy.isOn(1)).toBe(false);
    await setTimeout(20);
    expect(over).toBe(0);
  });
});
