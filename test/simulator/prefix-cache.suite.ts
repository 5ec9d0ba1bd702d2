import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CacheLimits, PrefixCache, SimulatedPrompt } from "../../src/simulator/prefix-cache.js";
import { anyPrompt, anyTraffic, longestShared } from "./served-prompts.js";

export interface CacheUnderTest {
  open(limits: CacheLimits): PrefixCache;
  /** A usual length of a content block, with which prompts become long enough to be cached. */
  readonly blockTokens: number;
  /** What a prompt hits when it was served right before. */
  hitOfRepeat(prompt: SimulatedPrompt): number;
}

/** Behaviours that a cache leaves out by its nature → why. */
export type CacheSkips = Readonly<Record<string, string>>;

const TTL_MS = 1_000;

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
  const traffic = anyTraffic(blockTokens, TTL_MS);

  describe(`prefix cache: ${name}`, () => {
    behaves("is known by its name", () => {
      expect(open({}).name).toBe(name);
    });

    behaves("is empty at first, and nothing hits", () => {
      fc.assert(
        fc.property(prompts, (prompt) => {
          const cache = open({});
          expect(cache.heldTokens).toBe(0);
          expect(cache.serve(prompt, 0).cachedTokens).toBe(0);
        }),
      );
    });

    behaves("gives the same answers to the same prompts", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const [one, other] = [open({ ttlMs: TTL_MS }), open({ ttlMs: TTL_MS })];
          for (const { prompt, now } of served) {
            expect(one.serve(prompt, now)).toEqual(other.serve(prompt, now));
            expect(one.heldTokens).toBe(other.heldTokens);
          }
        }),
      );
    });

    behaves("hits what its rule says when a prompt comes twice, and holds no more than before", () => {
      fc.assert(
        fc.property(prompts, (prompt) => {
          const cache = open({});
          cache.serve(prompt, 0);
          const { heldTokens } = cache;
          expect(cache.serve(prompt, 0).cachedTokens).toBe(hitOfRepeat(prompt));
          expect(cache.heldTokens).toBe(heldTokens);
        }),
      );
    });

    behaves("never hits more than a prompt shares with an earlier one", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const cache = open({});
          served.forEach(({ prompt, now }, n) => {
            const { cachedTokens } = cache.serve(prompt, now);
            expect(cachedTokens).toBeLessThanOrEqual(longestShared(served.slice(0, n), prompt.tokens));
          });
        }),
      );
    });

    behaves("never reads and writes more than the prompt has, nor holds more than was served", () => {
      fc.assert(
        fc.property(traffic, (served) => {
          const cache = open({ ttlMs: TTL_MS });
          let total = 0;
          for (const { prompt, now } of served) {
            const { cachedTokens, writtenTokens } = cache.serve(prompt, now);
            expect(Math.min(cachedTokens, writtenTokens ?? 0)).toBeGreaterThanOrEqual(0);
            expect(cachedTokens + (writtenTokens ?? 0)).toBeLessThanOrEqual(prompt.tokens.length);
            total += prompt.tokens.length;
            expect(cache.heldTokens).toBeLessThanOrEqual(total);
          }
        }),
      );
    });

    behaves("never holds more than its capacity, and hits no more than without one", () => {
      fc.assert(
        fc.property(traffic, fc.integer({ min: 1, max: 12 * blockTokens }), (served, capacityTokens) => {
          const [small, endless] = [open({ capacityTokens }), open({})];
          for (const { prompt, now } of served) {
            const { cachedTokens } = small.serve(prompt, now);
            expect(cachedTokens).toBeLessThanOrEqual(endless.serve(prompt, now).cachedTokens);
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
          for (const { prompt, now } of served) expect(large.serve(prompt, now)).toEqual(endless.serve(prompt, now));
        }),
      );
    });

    behaves("forgets at its TTL after the last use, and not before", () => {
      const cacheable = prompts.filter((prompt) => hitOfRepeat(prompt) > 0);
      fc.assert(
        fc.property(cacheable, fc.integer({ min: 1, max: TTL_MS - 1 }), (prompt, wait) => {
          const cache = open({ ttlMs: TTL_MS });
          const hit = hitOfRepeat(prompt);
          cache.serve(prompt, 0);
          expect(cache.serve(prompt, wait).cachedTokens).toBe(hit);
          // Used at `wait`, so alive when the first use has long been too old …
          expect(cache.serve(prompt, wait + TTL_MS - 1).cachedTokens).toBe(hit);
          // … and gone once nothing used it for as long as the TTL.
          expect(cache.serve(prompt, wait + 2 * TTL_MS - 1).cachedTokens).toBe(0);
        }),
      );
    });

    behaves("lets go of the tokens of what it forgot by time", () => {
      fc.assert(
        fc.property(traffic, prompts, (served, last) => {
          const [old, fresh] = [open({ ttlMs: TTL_MS }), open({ ttlMs: TTL_MS })];
          for (const { prompt, now } of served) old.serve(prompt, now);
          const now = (served.at(-1)?.now ?? 0) + TTL_MS;
          // Some caches leave a prompt below their minimum alone, and with it the clock.
          for (const cache of [old, fresh]) {
            cache.serve({ tokens: Array.from({ length: 1_024 }, (_, n) => 7 * n) }, now);
            cache.serve(last, now);
          }
          expect(old.heldTokens).toBe(fresh.heldTokens);
        }),
      );
    });

    behaves("is as new after clear", () => {
      fc.assert(
        fc.property(traffic, traffic, (before, after) => {
          const [cleared, fresh] = [open({}), open({})];
          for (const { prompt, now } of before) cleared.serve(prompt, now);
          cleared.clear();
          expect(cleared.heldTokens).toBe(0);
          for (const { prompt, now } of after) {
            expect(cleared.serve(prompt, now)).toEqual(fresh.serve(prompt, now));
            expect(cleared.heldTokens).toBe(fresh.heldTokens);
          }
        }),
      );
    });

    behaves("keeps its own copy of the tokens", () => {
      fc.assert(
        fc.property(prompts, (prompt) => {
          const cache = open({});
          const tokens = [...prompt.tokens];
          cache.serve({ ...prompt, tokens }, 0);
          tokens.fill(-5);
          expect(cache.serve(prompt, 0).cachedTokens).toBe(hitOfRepeat(prompt));
        }),
      );
    });

    behaves("takes an empty prompt", () => {
      const cache = open({});
      expect(cache.serve({ tokens: [], breakpoints: [] }, 0).cachedTokens).toBe(0);
      expect(cache.heldTokens).toBe(0);
    });

    behaves("refuses a limit that is not above 0", () => {
      for (const limit of [0, -1, Number.NaN]) expect(() => open({ ttlMs: limit })).toThrow(RangeError);
    });
  });
}
