import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LruMap } from "../../../src/core/text/lru-map.js";

const use = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), key: fc.nat({ max: 12 }), value: fc.nat() }),
  fc.record({ kind: fc.constant("get" as const), key: fc.nat({ max: 12 }) }),
  fc.record({ kind: fc.constant("delete" as const), key: fc.nat({ max: 12 }) }),
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("clear" as const) }) },
);

describe("a map of the most recently used", () => {
  it("keeps those, whatever was used in between", () => {
    const property = fc.property(fc.integer({ min: 1, max: 8 }), fc.array(use, { maxLength: 200 }), (max, uses) => {
      const map = new LruMap<number, number>(max);
      /** Least recently used first. */
      let kept: (readonly [key: number, value: number])[] = [];
      for (const one of uses) {
        if (one.kind === "clear") {
          map.clear();
          kept = [];
          continue;
        }
        if (one.kind === "delete") {
          map.delete(one.key);
          kept = kept.filter(([key]) => key !== one.key);
          continue;
        }
        const before = kept.find(([key]) => key === one.key);
        const value = one.kind === "set" ? one.value : before?.[1];
        if (one.kind === "set") map.set(one.key, one.value);
        else expect(map.get(one.key)).toBe(value);
        if (value !== undefined)
          kept = [...kept.filter((entry) => entry !== before), [one.key, value] as const].slice(-max);
        expect([...map.values()]).toEqual(kept.map(([, kept]) => kept));
        expect(map.size).toBe(kept.length);
      }
    });
    fc.assert(property, { numRuns: 500 });
  });
});
