import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reachOf } from "../../../src/core/cache/cache-report.js";
import { KEEPS_ALL } from "../../../src/core/cache/residency.js";
import type { Composition } from "../../../src/core/compose/compose.js";
import { memory, system, UserScope, user } from "../compose/scope-fixture.js";
import { indexEntries } from "./index-entries.js";
import { checkIndex } from "./index-rules.js";
import { blockTokens, HEAD_TOKENS, type PromptServed, ServedPrompts } from "./served-prompts.js";
import { anySequence } from "./served-sequences.js";

/** A memory of some 250 tokens, so that one block is more than any engine's step. */
const big = (name: string) => memory(name, `${name} ${"x".repeat(1_000)}`);
const bigs = (...names: readonly string[]) => names.map(big);

const INSTRUCTIONS = system("Be kind. ".repeat(150));

const MINUTE = 60_000;
/** Composes one prompt with memories of these names, a minute after what was before. */
function ask(scope: UserScope, ...names: readonly string[]): Composition {
  scope.now += MINUTE;
  return scope.compose([INSTRUCTIONS, user("?")], bigs(...names));
}

/** What is expected to be cached of a prompt with memories of these names, without leaving a trace of having asked. */
function expected(scope: UserScope, ...names: readonly string[]): number {
  const { plan, leaf } = ask(scope, ...names);
  scope.evict(leaf);
  return plan.expectedCachedTokens;
}

/** Tokens of a prompt up to the end of its first `count` blocks, as a repeated prompt expects them. */
function upTo(composition: Composition, count: number): number {
  const scope = new UserScope();
  const names = composition.memories.map(({ memoryId }) => memoryId);
  ask(scope, ...names.slice(0, count));
  return ask(scope, ...names).plan.expectedCachedTokens;
}

describe("a report of a miss in the blocks", () => {
  it("removes what was behind the missed part, and keeps the hit prefix and the request's own blocks", () => {
    const scope = new UserScope();
    ask(scope, "a", "b", "c");
    ask(scope, "a", "b", "d");
    ask(scope, "a", "e");
    const again = ask(scope, "a", "b", "c");
    expect(again.plan.expectedCachedTokens).toBe(upTo(again, 3));
    scope.report(again, upTo(again, 1));
    checkIndex(scope.state.index);
    expect(expected(scope, "a", "b", "c")).toBe(upTo(again, 3));
    // "d" was behind the missed "b"; "e" was behind the hit "a" and used after "d", which was evicted by then.
    expect(expected(scope, "a", "b", "d")).toBe(upTo(again, 2));
    expect(expected(scope, "a", "e")).toBe(upTo(again, 2));
  });
});

describe("a miss", () => {
  it("removes all behind the missed part that was not served since, and keeps what was", () => {
    const life = fc.property(
      fc.array(anySequence, { minLength: 2, maxLength: 12 }),
      fc.nat(11),
      fc.nat(80),
      (sequences, nth, hit) => {
        const prompts = new ServedPrompts(KEEPS_ALL, 1_000);
        for (const sequence of sequences) {
          prompts.now += MINUTE;
          prompts.serve(sequence);
        }
        const request = prompts.served[nth % sequences.length] as PromptServed;
        prompts.index.miss(request.node, request.clock, hit, request.at - 1);
        checkIndex(prompts.index);
        for (const prompt of prompts.served)
          if (prompt.clock >= request.clock) expect(prompts.holds(prompt)).toBe(true);
        for (const { labels, lastUsed } of indexEntries(prompts.index, 1_000)) {
          if (lastUsed >= request.clock) continue;
          let shared = HEAD_TOKENS;
          for (const [at, block] of labels.entries()) {
            if (request.labels[at] !== block) break;
            shared += blockTokens(block);
          }
          expect(shared).toBeLessThanOrEqual(hit);
        }
      },
    );
    fc.assert(life, { numRuns: 500 });
  });
});

describe("how far a report reaches", () => {
  const request = { plan: { expectedCachedTokens: 1_000, totalTokens: 1_200 } };
  const reach = (cachedTokens: number, promptTokens: number | null) => reachOf(request, { cachedTokens, promptTokens });

  it.each([
    [896, "a multiple of 128, as OpenAI reports", 128],
    [880, "a multiple of 16, as vLLM reports", 16],
    [881, "exact, as SGLang reports", 1],
  ])("is, of %i tokens, %s, up to %i tokens more, and what the estimates may be off", (cachedTokens, _which, step) => {
    expect(reach(cachedTokens, 1_200)).toBe(cachedTokens + step + 20);
  });

  it("is scaled to the plan's estimates by the engine's own count of the prompt", () => {
    expect(reach(440, 600)).toBe((440 + 1) * 2 + 20);
    expect(reach(960, 1_440)).toBeCloseTo((960 + 16) / 1.2 + 20);
  });

  it("takes a short prefix as hit where no step of the engine's could show it", () => {
    const scope = new UserScope();
    scope.compose([user("?")], [memory("a"), memory("b")]);
    const again = scope.compose([user("?")], [memory("a"), memory("c")]);
    expect(again.plan.expectedCachedTokens).toBeGreaterThan(0);
    scope.report(again, 0);
    const { plan } = scope.compose([user("?")], [memory("a"), memory("b")]);
    expect(plan.expectedCachedTokens).toBeGreaterThan(again.plan.expectedCachedTokens);
  });
});
