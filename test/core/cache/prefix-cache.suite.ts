import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CacheLimits, PrefixCache } from "../../../src/core/cache/simulated-cache.js";
import { anyPrompt, anyTraffic, longestShared } from "./simulated-prompts.js";

export interface CacheUnderTest {
  open(limits: CacheLimits): PrefixCache;
  /** A usual length of a content block, with which prompts become long enough to be cached. */
  readonly blockTokens: number;
  /** What a prompt hits when it was served right before. */
  hitOfRepeat(tokens: readonly number[]): number;
}

/** Behaviours that a cache leaves out by its nature → why. */
export type CacheSkips = Readonly<Record<string, string>>;

/** The behaviour of every simulated prefix cache. A skipped behaviour states why in its title. */
export function describePrefixCache(
  name: string,
  { open, blockTokens, hitOfRepeat }: CacheUnderTest,
  skips: CacheSkips = {},
): void {
  const behaves = (title: string, holds: () => void) => {
    const reason = skips[title];
    it.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, holds);
  };
  const prompts = anyPrompt(blockTokens);
  const traffic = anyTraffic(blockTokens);

  describe(`prefix cache: ${name}`, () => {
    behaves("is empty at first, and nothing hits", () => {
      fc.assert(
        fc.property(prompts, (prompt) => {
          const cache = open({});
          expect(cache.heldTokens).toBe(0);
          expect(cache.serve(prompt)).toBe(0);
        }),
      );
    });

    behaves("gives the same answers to the same prompts", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const [one, other] = [open({}), open({})];
          for (const prompt of served) {
            expect(one.serve(prompt)).toEqual(other.serve(prompt));
            expect(one.heldTokens).toBe(other.heldTokens);
          }
        }),
      );
    });

    behaves("hits what its rule says when a prompt comes twice, and holds no more than before", () => {
      fc.assert(
        fc.property(prompts, (prompt) => {
          const cache = open({});
          cache.serve(prompt);
          const { heldTokens } = cache;
          expect(cache.serve(prompt)).toBe(hitOfRepeat(prompt));
          expect(cache.heldTokens).toBe(heldTokens);
        }),
      );
    });

    behaves("never hits more than a prompt shares with an earlier one", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const cache = open({});
          served.forEach((prompt, n) => {
            expect(cache.serve(prompt)).toBeLessThanOrEqual(longestShared(served.slice(0, n), prompt));
          });
        }),
      );
    });

    behaves("never hits more than the prompt has, nor holds more than was served", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const cache = open({});
          let total = 0;
          for (const prompt of served) {
            const cachedTokens = cache.serve(prompt);
            expect(cachedTokens).toBeGreaterThanOrEqual(0);
            expect(cachedTokens).toBeLessThanOrEqual(prompt.length);
            total += prompt.length;
            expect(cache.heldTokens).toBeLessThanOrEqual(total);
          }
        }),
      );
    });

    behaves("never holds more than its capacity, and hits no more than without one", () => {
      fc.assert(
        fc.property(traffic, fc.integer({ min: 1, max: 12 * blockTokens }), (served, capacityTokens) => {
          const [small, endless] = [open({ capacityTokens }), open({})];
          for (const prompt of served) {
            expect(small.serve(prompt)).toBeLessThanOrEqual(endless.serve(prompt));
            expect(small.heldTokens).toBeLessThanOrEqual(capacityTokens);
            expect(small.heldTokens).toBeLessThanOrEqual(endless.heldTokens);
          }
        }),
      );
    });

    behaves("takes a capacity that is never reached for none", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const [large, endless] = [open({ capacityTokens: 1_000_000 }), open({})];
          for (const prompt of served) expect(large.serve(prompt)).toEqual(endless.serve(prompt));
        }),
      );
    });

    behaves("keeps its own copy of the tokens", () => {
      fc.assert(
        fc.property(prompts, (prompt) => {
          const cache = open({});
          const tokens = [...prompt];
          cache.serve(tokens);
          tokens.fill(-5);
          expect(cache.serve(prompt)).toBe(hitOfRepeat(prompt));
        }),
      );
    });

    behaves("takes an empty prompt", () => {
      const cache = open({});
      expect(cache.serve([])).toBe(0);
      expect(cache.heldTokens).toBe(0);
    });

    behaves("refuses a capacity that is not above 0", () => {
      for (const limit of [0, -1, Number.NaN]) expect(() => open({ capacityTokens: limit })).toThrow(RangeError);
    });
  });
}
