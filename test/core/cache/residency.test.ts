import { describe, expect, it } from "vitest";
import { residencyModel } from "../../../src/core/cache/residency.js";
import { checkIndex } from "./index-rules.js";
import { describeResidencyModel } from "./residency.suite.js";
import { blockTokens, HEAD_TOKENS, type PromptServed, ServedPrompts } from "./served-prompts.js";
import { HERE, label, labels } from "./served-sequences.js";

const TTL_MS = 10_000;
const CAPACITY = 60;

describeResidencyModel("all", residencyModel({ kind: "all" }));
describeResidencyModel("ttl", residencyModel({ kind: "ttl", ttlMs: TTL_MS }));
describeResidencyModel("capacity", residencyModel({ kind: "capacity", tokens: CAPACITY }));
describeResidencyModel(
  "ttl and capacity",
  residencyModel({ kind: "ttl-and-capacity", ttlMs: TTL_MS, tokens: CAPACITY }),
);

const heldOf = (prompts: ServedPrompts, served: readonly PromptServed[]) =>
  served.map((prompt) => prompts.holds(prompt));

describe("residency: all", () => {
  it("takes nothing, however old and however much", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "all" }), 1_000);
    const served = Array.from({ length: 50 }, (_, n) => prompts.serve(labels(n + 1)));
    prompts.now = Number.MAX_SAFE_INTEGER;
    prompts.expire();
    expect(heldOf(prompts, served)).not.toContain(false);
  });
});

describe("residency: ttl", () => {
  const ttl = () => new ServedPrompts(residencyModel({ kind: "ttl", ttlMs: TTL_MS }));

  it("takes what was last used its time ago, and not a millisecond before", () => {
    const prompts = ttl();
    const served = prompts.serve(labels(1));
    prompts.now = TTL_MS - 1;
    prompts.expire();
    expect(prompts.holds(served)).toBe(true);
    prompts.now = TTL_MS;
    prompts.expire();
    expect(prompts.index.size).toBe(0);
  });

  it("keeps the whole prefix of what was used again, and evicts the rest", () => {
    const prompts = ttl();
    const [long, other] = [prompts.serve(labels(1, 2, 3)), prompts.serve(labels(4))];
    prompts.now = TTL_MS - 1;
    const short = prompts.serve(labels(1, 2));
    prompts.now = TTL_MS + 1;
    prompts.expire();
    expect(heldOf(prompts, [long, other, short])).toEqual([false, false, true]);
    expect(prompts.index.hasAnchor(HERE)).toBe(true);
  });
});

describe("residency: capacity", () => {
  const capacity = (tokens: number) => new ServedPrompts(residencyModel({ kind: "capacity", tokens }), 1_000);
  const TAIL = 4;

  it("counts every shared prefix once: the text before the blocks, the blocks, and the text after them", () => {
    const prompts = capacity(1_000_000);
    prompts.serve(labels(1, 2));
    prompts.serve(labels(1, 3));
    const blocks = [1, 2, 3].reduce((sum, n) => sum + blockTokens(label(n)), 0);
    expect(prompts.index.tokens).toBe(HEAD_TOKENS + blocks + 2 * TAIL);
  });

  it("evicts the least recently used until the rest fits, the end of a prompt before its start", () => {
    const prompts = capacity(HEAD_TOKENS + blockTokens(label(1)) + blockTokens(label(3)) + 2 * TAIL);
    const [long, short] = [prompts.serve(labels(1, 2)), prompts.serve(labels(1))];
    const other = prompts.serve(labels(3));
    prompts.expire();
    expect(heldOf(prompts, [long, short, other])).toEqual([false, true, true]);
    expect(prompts.index.tokens).toBeLessThanOrEqual(HEAD_TOKENS + 3 + 7 + 2 * TAIL);
    const last = prompts.serve(labels(5));
    prompts.expire();
    expect(heldOf(prompts, [short, other, last])).toEqual([false, false, true]);
  });

  it("truncates a prompt that alone exceeds the capacity, block by block", () => {
    const prompts = capacity(HEAD_TOKENS + blockTokens(label(1)) + blockTokens(label(2)));
    const served = prompts.serve(labels(1, 2, 3, 4));
    prompts.expire();
    expect(prompts.index.heldBlocks(HERE, served.labels)).toBe(2);
    prompts.reload();
    const again = prompts.serve(labels(1, 2, 3, 4));
    checkIndex(prompts.index);
    expect(prompts.holds(again)).toBe(true);
    expect(prompts.index.evict(served.node)).toBe(true);
    expect(prompts.holds(again)).toBe(true);
    expect(prompts.index.evict(again.node)).toBe(true);
    expect(prompts.index.size).toBe(0);
  });
});

describe("residency models", () => {
  it("refuse a limit that nothing can meet", () => {
    expect(() => residencyModel({ kind: "ttl", ttlMs: 0 })).toThrow(RangeError);
    expect(() => residencyModel({ kind: "capacity", tokens: -1 })).toThrow("tokens is -1, not above 0");
    expect(() => residencyModel({ kind: "ttl-and-capacity", ttlMs: 1, tokens: Number.NaN })).toThrow(RangeError);
  });
});

describe("a conversation that alone is more than an index may hold", () => {
  it("is known by its last turns, within the bound, and goes on", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "all" }), 10);
    const turns = [prompts.serve(labels(1))];
    for (let n = 2; n <= 40; n++) {
      turns.push(prompts.serve(labels((n % 8) + 1), turns.at(-1)));
      checkIndex(prompts.index);
      expect(heldOf(prompts, turns.slice(-2))).toEqual([true, true]);
    }
    expect(heldOf(prompts, turns.slice(0, 10))).not.toContain(true);
    expect(prompts.index.tokens).toBe(turns.at(-1)?.tokens);
  });
});
