import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TokenBuckets } from "../../../src/service/base/token-buckets.js";

const rate = fc.record({ perSecond: fc.integer({ min: 1, max: 50 }), burst: fc.integer({ min: 1, max: 100 }) });
const gaps = fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 100 });

describe("token buckets", () => {
  it("allow in no span of time more than the burst and what came in since, and never refuse who keeps to the rate", () => {
    fc.assert(
      fc.property(rate, gaps, (limits, waits) => {
        const buckets = new TokenBuckets(limits);
        const allowed: number[] = [];
        let now = 0;
        for (const wait of waits) {
          now += wait;
          const { isAllowed, remaining } = buckets.take("a", now);
          if (isAllowed) allowed.push(now);
          expect(remaining).toBeGreaterThanOrEqual(0);
          expect(remaining).toBeLessThan(limits.burst);
          if (wait * limits.perSecond >= 1_000) expect(isAllowed).toBe(true);
        }
        for (const [at, start] of allowed.entries()) {
          const most = limits.burst + ((allowed.at(-1) ?? 0) - start) * (limits.perSecond / 1_000);
          expect(allowed.length - at).toBeLessThanOrEqual(most + 1e-6);
        }
      }),
    );
  });

  it("are apart for every caller, and no more than their bound, the longest unused going first", () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1 }, 3);
    for (const caller of ["a", "b", "c"]) expect(buckets.take(caller, 0).isAllowed).toBe(true);
    expect(buckets.take("a", 0).isAllowed).toBe(false);
    for (let at = 0; at < 100; at++) buckets.take(`other-${at}`, 0);
    expect(buckets.size).toBe(3);
    expect(buckets.take("other-99", 0).isAllowed).toBe(false);
  });

  it("take no clock that goes back for time that passed", () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1 });
    buckets.take("a", 10_000);
    expect(buckets.take("a", 0).isAllowed).toBe(false);
    expect(buckets.take("a", 10_500).isAllowed).toBe(false);
    expect(buckets.take("a", 11_000).isAllowed).toBe(true);
  });
});
