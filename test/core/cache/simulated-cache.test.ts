import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { encodeO200k } from "../../../src/cli/o200k.js";
import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import type { ChatMessage } from "../../../src/core/index.js";
import { chatTokenizer } from "../../../src/eval/base/chat-tokens.js";
import { pickConversation, readLocomo } from "../../../src/eval/locomo/locomo-data.js";
import { longestShared, sharedTokens } from "./simulated-prompts.js";

const sample = JSON.parse(readFileSync(new URL("../../../examples/sample-locomo.json", import.meta.url), "utf8"));
const { observations, questions } = pickConversation(readLocomo(sample));

/** A growing chat about a long system prompt, in o200k tokens. */
function growingChat(): number[][] {
  const tokenize = chatTokenizer(encodeO200k);
  const notes = Array.from({ length: 4 }, () => observations.map(({ text }) => `- ${text}`).join("\n"));
  const messages: ChatMessage[] = [{ role: "system", content: notes.join("\n") }];
  return questions.map(({ question, answer }) => {
    messages.push({ role: "user", content: question });
    const tokens = tokenize(messages);
    messages.push({ role: "assistant", content: answer ?? "I don't know." });
    return tokens;
  });
}

describe("a growing chat in real tokens", () => {
  const turns = growingChat();

  it("is longer than every minimum, and each turn begins with the turn before up to its answer", () => {
    expect(turns.length).toBeGreaterThan(5);
    turns.slice(1).forEach((prompt, n) => {
      const before = turns[n] ?? [];
      expect(before.length).toBeGreaterThan(1_400);
      expect(sharedTokens(before, prompt)).toBeGreaterThanOrEqual(before.length - 3);
    });
  });

  it.each([
    ["blocks", 16],
    ["radix", 1],
  ] as const)("hits in %s what its rule says, turn by turn", (name, step) => {
    const cache = new SimulatedCache(name);
    turns.forEach((prompt, turn) => {
      const shared = Math.min(longestShared(turns.slice(0, turn), prompt), prompt.length - 1);
      expect(cache.serve(prompt)).toBe(Math.floor(shared / step) * step);
    });
  });
});
