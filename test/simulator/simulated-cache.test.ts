import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { encodeO200k } from "../../src/cli/o200k.js";
import type { ChatMessage } from "../../src/core/index.js";
import { pickConversation, readLocomo } from "../../src/eval/locomo/locomo-data.js";
import { chatTokenizer } from "../../src/simulator/chat-tokens.js";
import type { SimulatedPrompt } from "../../src/simulator/prefix-cache.js";
import { CACHE_NAMES, type CacheName, simulatedCache } from "../../src/simulator/simulated-cache.js";
import { longestShared, run, type Served, sharedTokens } from "./served-prompts.js";

const sample = JSON.parse(readFileSync(new URL("../../examples/sample-locomo.json", import.meta.url), "utf8"));
const { observations, questions } = pickConversation(readLocomo(sample));

/** A growing chat about a long system prompt, in o200k tokens; a breakpoint behind the system prompt and the newest message. */
function growingChat(): Served[] {
  const tokenize = chatTokenizer(encodeO200k);
  const notes = Array.from({ length: 4 }, () => observations.map(({ text }) => `- ${text}`).join("\n"));
  const messages: ChatMessage[] = [{ role: "system", content: notes.join("\n") }];
  return questions.map(({ question, answer }, turn) => {
    messages.push({ role: "user", content: question });
    const tokens = tokenize(messages);
    const opening = tokenize([]).length;
    const blockEnds = messages.map((_, n) => tokenize(messages.slice(0, n + 1)).length - opening);
    const breakpoints = [blockEnds[0], blockEnds.at(-1)].map(Number);
    messages.push({ role: "assistant", content: answer ?? "I don't know." });
    return { prompt: { tokens, blockEnds, breakpoints }, now: turn * 10_000 };
  });
}

describe("simulated caches by name", () => {
  it.each(CACHE_NAMES)("make a cache called %s", (name) => {
    expect(simulatedCache(name).name).toBe(name);
  });

  it.each(["blocks", "radix"] as const)("give %s the capacity and the TTL asked for", (name) => {
    const cache = simulatedCache(name, { capacityTokens: 64, ttlMs: 5 });
    cache.serve({ tokens: run(0, 1_000) }, 0);
    expect(cache.heldTokens).toBe(64);
    expect(cache.serve({ tokens: run(0, 1_000) }, 4).cachedTokens).toBe(64);
    expect(cache.serve({ tokens: run(0, 1_000) }, 9).cachedTokens).toBe(0);
  });

  it.each(["openai", "openai-breakpoints", "anthropic"] as const)(
    "refuse a capacity for %s, which names none",
    (name) => {
      expect(() => simulatedCache(name, { capacityTokens: 1_000 })).toThrow(RangeError);
      const prompt = { tokens: run(0, 2_000), breakpoints: [1_500] };
      const cache = simulatedCache(name, { ttlMs: 5 });
      cache.serve(prompt, 0);
      expect(cache.serve(prompt, 4).cachedTokens).toBeGreaterThan(1_400);
      expect(cache.serve(prompt, 9).cachedTokens).toBe(0);
    },
  );

  it.each(["blocks", "radix"] as const)("refuse a capacity of nothing for %s", (name) => {
    expect(() => simulatedCache(name, { capacityTokens: 0 })).toThrow("capacityTokens is 0, not above 0");
  });
});

describe("a growing chat in real tokens", () => {
  const turns = growingChat();

  /** By a cache's rule, from the longest prefix shared with an earlier turn. */
  const HITS: Record<CacheName, (shared: number, turn: number, prompt: SimulatedPrompt) => number> = {
    blocks: (shared) => Math.floor(shared / 16) * 16,
    radix: (shared) => shared,
    openai: (shared) => Math.floor(shared / 128) * 128,
    "openai-breakpoints": (_, turn, { breakpoints }) => (turn === 0 ? 0 : (breakpoints?.[0] ?? 0)),
    anthropic: (_, turn) => (turn === 0 ? 0 : (turns[turn - 1]?.prompt.breakpoints?.at(-1) ?? 0)),
  };

  it("is longer than every minimum, and each turn begins with the turn before up to its answer", () => {
    expect(turns.length).toBeGreaterThan(5);
    turns.slice(1).forEach(({ prompt }, n) => {
      const before = turns[n]?.prompt.tokens ?? [];
      expect(before.length).toBeGreaterThan(1_400);
      expect(sharedTokens(before, prompt.tokens)).toBeGreaterThanOrEqual(before.length - 3);
    });
  });

  it.each(CACHE_NAMES)("hits in %s what its rule says, turn by turn", (name) => {
    const cache = simulatedCache(name);
    turns.forEach(({ prompt, now }, turn) => {
      const shared = Math.min(longestShared(turns.slice(0, turn), prompt.tokens), prompt.tokens.length - 1);
      expect(cache.serve(prompt, now).cachedTokens).toBe(HITS[name](shared, turn, prompt));
    });
  });
});
