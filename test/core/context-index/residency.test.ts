import { describe, expect, it } from "vitest";
import { residencyModel } from "../../../src/core/context-index/residency.js";
import type { Digest } from "../../../src/core/text/ids.js";
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

  it("keeps all turns before one that was used, also after a reload, and one by one without it", () => {
    const prompts = ttl();
    const first = prompts.serve(labels(1));
    prompts.now = TTL_MS - 1;
    const second = prompts.serve(labels(2), first);
    prompts.now = TTL_MS + 1;
    prompts.reload();
    prompts.expire();
    expect(heldOf(prompts, [first, second])).toEqual([true, true]);
    // The engine dropped the later turn only: its use of the earlier one still counts.
    prompts.index.evict(second.node);
    prompts.expire();
    expect(heldOf(prompts, [first, second])).toEqual([true, false]);
    prompts.now = 2 * TTL_MS;
    prompts.expire();
    expect(prompts.index.size).toBe(0);
  });

  it("counts from a report's time where it came later, unless a later request used the same", () => {
    const prompts = ttl();
    const [one, two] = [prompts.serve(labels(1)), prompts.serve(labels(2))];
    prompts.now = 1_000;
    prompts.index.refresh(one.node, one.clock, prompts.now);
    const again = prompts.serve(labels(2));
    prompts.index.refresh(two.node, two.clock, 5_000);
    expect(again.node).toBe(two.node);
    prompts.now = TTL_MS + 999;
    prompts.expire();
    expect(heldOf(prompts, [one, two])).toEqual([true, true]);
    prompts.now = TTL_MS + 1_000;
    prompts.expire();
    expect(prompts.index.size).toBe(0);
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

  it("counts a conversation as its last prompt: each turn's prefix is the prompt of the turn before", () => {
    const prompts = capacity(1_000_000);
    let turn = prompts.serve(labels(1, 2));
    for (const blocks of [labels(3), labels(), labels(4, 5), labels(6)]) turn = prompts.serve(blocks, turn);
    expect(prompts.index.tokens).toBe(turn.tokens);
    prompts.reload();
    expect(prompts.index.tokens).toBe(turn.tokens);
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
    prompts.index.check();
    expect(prompts.holds(again)).toBe(true);
    expect(prompts.index.evict(served.node)).toBe(true);
    expect(prompts.holds(again)).toBe(true);
    expect(prompts.index.evict(again.node)).toBe(true);
    expect(prompts.index.size).toBe(0);
  });

  it("takes the latest turns of an idle conversation first, and of a used one none before the others", () => {
    const prompts = capacity(64);
    const idle = [prompts.serve(labels(1))];
    for (const n of [2, 3]) idle.push(prompts.serve(labels(n), idle.at(-1)));
    const other = prompts.serve(labels(8));
    prompts.expire();
    expect(heldOf(prompts, [...idle, other])).toEqual([true, true, false, true]);
    const again = prompts.serve(labels(4), idle[1]);
    prompts.expire();
    expect(heldOf(prompts, [...idle.slice(0, 2), other, again])).toEqual([true, true, false, true]);
  });
});

describe("residency models", () => {
  it("refuse a limit that nothing can meet", () => {
    expect(() => residencyModel({ kind: "ttl", ttlMs: 0 })).toThrow(RangeError);
    expect(() => residencyModel({ kind: "capacity", tokens: -1 })).toThrow("tokens is -1, not above 0");
    expect(() => residencyModel({ kind: "ttl-and-capacity", ttlMs: 1, tokens: Number.NaN })).toThrow(RangeError);
  });

  it("take nodes of before their times and tokens were kept for long unused, and for light", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "ttl", ttlMs: TTL_MS }));
    const old = prompts.serve(labels(1, 2));
    for (const row of prompts.rows.values()) Object.assign(row, { usedAt: 0, tokens: 0 });
    prompts.reload();
    prompts.index.check();
    expect(prompts.index.tokens).toBe(blockTokens(label(1)) + blockTokens(label(2)));
    prompts.now = 1_700_000_000_000;
    const again = prompts.serve(labels(3));
    expect(heldOf(prompts, [old, again])).toEqual([false, true]);
  });

  it("weigh a prefix stored before tokens were recorded once it is served again", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "all" }));
    const first = prompts.serve(labels(1));
    const second = prompts.serve(labels(2), first);
    for (const row of prompts.rows.values()) Object.assign(row, { tokens: 0 });
    prompts.reload();
    prompts.serve(labels(1));
    prompts.serve(labels(2), first);
    prompts.index.check();
    expect(prompts.index.tokens).toBe(second.tokens);
    expect(prompts.index.hasAnchor("elsewhere" as Digest)).toBe(false);
  });
});

describe("a conversation that alone is more than an index may hold", () => {
  it("is known by its last turns, within the bound, and goes on", () => {
    const prompts = new ServedPrompts(residencyModel({ kind: "all" }), 10);
    const turns = [prompts.serve(labels(1))];
    for (let n = 2; n <= 40; n++) {
      turns.push(prompts.serve(labels((n % 8) + 1), turns.at(-1)));
      prompts.index.check();
      expect(heldOf(prompts, turns.slice(-2))).toEqual([true, true]);
    }
    expect(heldOf(prompts, turns.slice(0, 10))).not.toContain(true);
    expect(prompts.index.tokens).toBe(turns.at(-1)?.tokens);
  });
});
