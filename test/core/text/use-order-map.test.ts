import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UseOrderMap } from "../../../src/core/text/use-order-map.js";

const key = fc.nat({ max: 9 });
const step = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), key, value: fc.nat() }),
  fc.record({ kind: fc.constant("use" as const), key }),
  fc.record({ kind: fc.constant("get" as const), key }),
  fc.record({ kind: fc.constant("delete" as const), key }),
);

describe("a map in the order of use", () => {
  it("is that of a list to whose end goes what is used", () => {
    const property = fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const map = new UseOrderMap<number, number>();
      let list: (readonly [key: number, value: number])[] = [];
      for (const one of steps) {
        const before = list.find(([known]) => known === one.key);
        const others = list.filter((entry) => entry !== before);
        if (one.kind === "set") {
          map.set(one.key, one.value);
          list = [...others, [one.key, one.value]];
        } else if (one.kind === "delete") {
          map.delete(one.key);
          list = others;
        } else {
          expect(one.kind === "use" ? map.use(one.key) : map.get(one.key)).toBe(before?.[1]);
          if (one.kind === "use" && before !== undefined) list = [...others, before];
        }
        expect([...map.values()]).toEqual(list.map(([, value]) => value));
        expect([map.size, map.oldest, map.has(one.key)]).toEqual([
          list.length,
          list[0]?.[0],
          list.some(([known]) => known === one.key),
        ]);
      }
      map.clear();
      expect([map.size, map.oldest, [...map.values()]]).toEqual([0, undefined, []]);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it("takes no more memory for being used", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const map = new UseOrderMap<number, number>();
    for (let at = 0; at < 1_000; at++) map.set(at, at);
    const used = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = used();
    for (let at = 0; at < 2_000_000; at++) map.use(at % 1_000);
    expect(used() - before).toBeLessThan(2_000_000);
    expect(map.size).toBe(1_000);
  });
});
