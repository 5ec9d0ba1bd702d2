import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LruMap } from "../../../src/core/text/collections.js";

const key = fc.nat({ max: 12 });
const step = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), key, value: fc.nat() }),
  fc.record({ kind: fc.constantFrom("get" as const, "peek" as const, "delete" as const), key }),
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("clear" as const), key }) },
);

describe("a map of the most recently used", () => {
  it("is that of a list to whose end goes what is used, and whose beginning goes beyond the bound", () => {
    const bound = fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined });
    const property = fc.property(bound, fc.array(step, { maxLength: 200 }), (max, steps) => {
      const map = new LruMap<number, number>(max);
      /** Least recently used first. */
      let list: (readonly [key: number, value: number])[] = [];
      for (const one of steps) {
        const before = list.find(([known]) => known === one.key);
        const others = list.filter((entry) => entry !== before);
        if (one.kind === "clear") {
          map.clear();
          list = [];
        } else if (one.kind === "set") {
          map.set(one.key, one.value);
          list = [...others, [one.key, one.value] as const].slice(-(max ?? Number.POSITIVE_INFINITY));
        } else if (one.kind === "delete") {
          map.delete(one.key);
          list = others;
        } else {
          expect(map[one.kind](one.key)).toBe(before?.[1]);
          if (one.kind === "get" && before !== undefined) list = [...others, before];
        }
        expect([...map.values()]).toEqual(list.map(([, value]) => value));
        const isKnown = list.some(([known]) => known === one.key);
        expect([map.size, map.oldest, map.has(one.key)]).toEqual([list.length, list[0]?.[0], isKnown]);
      }
    });
    fc.assert(property, { numRuns: 500 });
  });
});
