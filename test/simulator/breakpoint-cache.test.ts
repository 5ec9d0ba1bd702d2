import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  anthropicCache,
  BreakpointCache,
  BreakpointError,
  type BreakpointRules,
  openAiBreakpointCache,
} from "../../src/simulator/breakpoint-cache.js";
import type { SimulatedPrompt } from "../../src/simulator/prefix-cache.js";
import { anyTraffic, run, sharedTokens } from "./served-prompts.js";

/** A chat of content blocks of 10 tokens each, named by numbers, with breakpoints behind some of them, counted from 1. */
function chat(names: readonly number[], marked: readonly number[]): SimulatedPrompt {
  return {
    tokens: names.flatMap((name) => run(name * 100, 10)),
    blockEnds: names.map((_, n) => (n + 1) * 10),
    breakpoints: marked.map((block) => block * 10),
  };
}

/** A list of written prefixes, all looked through for every prompt. */
class NaiveBreakpoints {
  #written: { readonly prefix: readonly number[]; usedAt: number }[] = [];

  constructor(private readonly rules: BreakpointRules) {}

  serve({ tokens, breakpoints = [], blockEnds = [] }: SimulatedPrompt, now: number) {
    const { minimumTokens, writes, lookUps, lookBackBlocks, ttlMs } = this.rules;
    this.#written = this.#written.filter(({ usedAt }) => now - usedAt < ttlMs);
    const isReached = (offset: number) =>
      breakpoints.slice(-lookUps).some((breakpoint) => {
        const between = new Set([...blockEnds, ...breakpoints].filter((end) => end > offset && end <= breakpoint));
        return offset <= breakpoint && between.size < lookBackBlocks;
      });
    const isHit = ({ prefix }: { prefix: readonly number[] }) =>
      sharedTokens(prefix, tokens) === prefix.length &&
      [...blockEnds, ...breakpoints].includes(prefix.length) &&
      isReached(prefix.length);
    const hit = this.#written.filter(isHit).sort((a, b) => b.prefix.length - a.prefix.length)[0];
    if (hit !== undefined) hit.usedAt = now;
    const marked = breakpoints.filter((offset) => offset >= minimumTokens).slice(-writes);
    this.#written = this.#written.filter(
      ({ prefix }) => !marked.includes(prefix.length) || sharedTokens(prefix, tokens) < prefix.length,
    );
    for (const offset of marked) this.#written.push({ prefix: tokens.slice(0, offset), usedAt: now });
    const cachedTokens = hit?.prefix.length ?? 0;
    return { cachedTokens, writtenTokens: Math.max(0, Math.max(0, ...marked) - cachedTokens) };
  }

  get heldTokens(): number {
    const prefixes = this.#written.flatMap(({ prefix }) => prefix.map((_, n) => prefix.slice(0, n + 1).join(" ")));
    return new Set(prefixes).size;
  }
}

describe("breakpoint cache", () => {
  const anyRules: fc.Arbitrary<BreakpointRules> = fc.record({
    name: fc.constant("any rules"),
    minimumTokens: fc.integer({ min: 1, max: 60 }),
    maxBreakpoints: fc.constant(4),
    writes: fc.integer({ min: 1, max: 4 }),
    lookUps: fc.integer({ min: 1, max: 4 }),
    lookBackBlocks: fc.integer({ min: 1, max: 4 }),
    ttlMs: fc.integer({ min: 1, max: 40 }),
  });

  it("reads and writes as a list of all written prefixes would", () => {
    fc.assert(
      fc.property(anyRules, anyTraffic(6, 10), (rules, traffic) => {
        const cache = new BreakpointCache(rules);
        const naive = new NaiveBreakpoints(rules);
        for (const { prompt, now } of traffic) {
          expect(cache.serve(prompt, now)).toEqual(naive.serve(prompt, now));
          expect(cache.heldTokens).toBe(naive.heldTokens);
        }
      }),
      { numRuns: 300 },
    );
  });

  it.each([[[0, 10]], [[10, 10]], [[20, 10]], [[10.5]], [[31]], [[Number.NaN]]])(
    "refuses breakpoints at %j in a prompt of 30 tokens",
    (breakpoints) => {
      const cache = openAiBreakpointCache({ minimumTokens: 1 });
      const refused = () => cache.serve({ ...chat([1, 2, 3], []), breakpoints }, 0);
      expect(refused).toThrow(new BreakpointError(breakpoints, "not whole numbers that ascend from 1 to 30"));
      expect(cache.heldTokens).toBe(0);
    },
  );

  it("refuses ends of blocks that do not ascend", () => {
    const prompt = { ...chat([1, 2, 3], [1]), blockEnds: [20, 10] };
    expect(() => anthropicCache().serve(prompt, 0)).toThrow(BreakpointError);
  });
});

describe("Anthropic's cache", () => {
  const open = (minimumTokens = 10) => anthropicCache({ minimumTokens });

  it("reads what was written at its own breakpoint, and bills the rest up to the last one as written", () => {
    const cache = open();
    expect(cache.serve(chat([1, 2, 3], [1, 2]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 20 });
    expect(cache.serve(chat([1, 2, 3], [1, 2]), 0)).toEqual({ cachedTokens: 20, writtenTokens: 0 });
    expect(cache.serve(chat([1, 8, 3], [1, 2]), 0)).toEqual({ cachedTokens: 10, writtenTokens: 10 });
    expect(cache.heldTokens).toBe(30);
  });

  it("neither reads nor writes without a breakpoint", () => {
    const cache = open();
    cache.serve(chat([1, 2, 3], [3]), 0);
    expect(cache.serve(chat([1, 2, 3], []), 0)).toEqual({ cachedTokens: 0, writtenTokens: 0 });
  });

  it("does not hit a prefix that is shared but ends at no written breakpoint", () => {
    const cache = open();
    cache.serve(chat([1, 2, 3], [3]), 0);
    expect(cache.serve(chat([1, 2, 9], [2]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 20 });
  });

  it("finds the turn before in a growing conversation with one moving breakpoint, as its guide's example does", () => {
    const cache = open();
    expect(cache.serve(chat(run(1, 10), [10]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 100 });
    expect(cache.serve(chat(run(1, 15), [15]), 0)).toEqual({ cachedTokens: 100, writtenTokens: 50 });
    // Blocks 35 to 16 are tried; the entry at block 15 is one further away.
    expect(cache.serve(chat(run(1, 35), [35]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 350 });
  });

  it("reaches 20 ends of blocks back from each breakpoint, the breakpoint counted", () => {
    const hitAcross = (later: number, marked: readonly number[]) => {
      const cache = open();
      cache.serve(chat(run(1, 5), [5]), 0);
      return cache.serve(chat(run(1, 5 + later), marked), 0).cachedTokens;
    };
    expect(hitAcross(19, [24])).toBe(50);
    expect(hitAcross(20, [25])).toBe(0);
    // A second breakpoint closer to the entry has its own window.
    expect(hitAcross(30, [15, 35])).toBe(50);
  });

  it("takes the breakpoints for the only positions when ends of blocks are not given", () => {
    const cache = open();
    const { tokens } = chat(run(1, 3), []);
    cache.serve({ tokens, breakpoints: [20] }, 0);
    expect(cache.serve({ tokens, breakpoints: [30] }, 0).cachedTokens).toBe(0);
    expect(cache.serve({ tokens, breakpoints: [20, 30] }, 0).cachedTokens).toBe(30);
  });

  it("lets a prefix below the minimum pass without writing it", () => {
    const cache = open(25);
    expect(cache.serve(chat([1, 2, 3], [2]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 0 });
    expect(cache.serve(chat([1, 2, 3], [2, 3]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 30 });
    expect(cache.serve(chat([1, 2, 4], [2, 3]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 30 });
    expect(anthropicCache().serve({ tokens: run(0, 2_000), breakpoints: [1_023] }, 0).writtenTokens).toBe(0);
    expect(anthropicCache().serve({ tokens: run(0, 2_000), breakpoints: [1_024] }, 0).writtenTokens).toBe(1_024);
  });

  it("refuses more than four breakpoints and changes nothing", () => {
    const cache = open();
    const marked = [10, 20, 30, 40, 50];
    expect(() => cache.serve(chat(run(1, 5), [1, 2, 3, 4, 5]), 0)).toThrow(
      new BreakpointError(marked, "anthropic takes at most 4"),
    );
    expect(cache.heldTokens).toBe(0);
    expect(cache.serve(chat(run(1, 5), [2, 3, 4, 5]), 0).writtenTokens).toBe(50);
  });

  it("forgets after five minutes what was neither read nor marked, and keeps what was", () => {
    const cache = open();
    const minute = 60_000;
    cache.serve(chat([1, 2], [1, 2]), 0);
    cache.serve(chat([1, 3], [1]), 4 * minute);
    expect(cache.serve(chat([1, 2], [2]), 6 * minute)).toEqual({ cachedTokens: 10, writtenTokens: 10 });
    expect(cache.serve(chat([1, 2], [1, 2]), 11 * minute)).toEqual({ cachedTokens: 0, writtenTokens: 20 });
  });
});

describe("OpenAI's cache since GPT-5.6", () => {
  const open = () => openAiBreakpointCache({ minimumTokens: 10 });

  it("matches at its own breakpoints exactly, without falling back to a shorter prefix", () => {
    const cache = open();
    expect(cache.serve(chat([1, 2], [2]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 20 });
    // The same conversation, grown: the earlier end is no breakpoint any more.
    expect(cache.serve(chat([1, 2, 3], [3]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 30 });
    expect(cache.serve(chat([1, 2, 3, 4], [3, 4]), 0)).toEqual({ cachedTokens: 30, writtenTokens: 10 });
  });

  it("writes the last four of any number of breakpoints", () => {
    const cache = open();
    expect(cache.serve(chat(run(1, 6), [1, 2, 3, 4, 5, 6]), 0)).toEqual({ cachedTokens: 0, writtenTokens: 60 });
    expect(cache.serve(chat([1, 2, 90], [1, 2]), 0).cachedTokens).toBe(0);
    expect(cache.serve(chat([1, 2, 3, 91], [3]), 0).cachedTokens).toBe(30);
  });

  it("looks up the last 80 breakpoints", () => {
    const hitWith = (breakpoints: number) => {
      const cache = open();
      cache.serve(chat([1, 2], [1]), 0);
      return cache.serve(chat(run(1, breakpoints), run(1, breakpoints)), 0).cachedTokens;
    };
    expect([hitWith(80), hitWith(81)]).toEqual([10, 0]);
  });

  it("forgets after half an hour", () => {
    const cache = open();
    cache.serve(chat([1], [1]), 0);
    expect(cache.serve(chat([1], [1]), 30 * 60_000 - 1).cachedTokens).toBe(10);
    expect(cache.serve(chat([1], [1]), 60 * 60_000).cachedTokens).toBe(0);
  });
});
