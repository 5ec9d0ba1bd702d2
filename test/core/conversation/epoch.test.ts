import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { endOfEpoch, newestWithin } from "../../../src/core/conversation/epoch.js";
import { messagesTokens } from "../../../src/core/prompt/prompt.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { countTokens } from "../compose/scope-fixture.js";

describe("an epoch", () => {
  const bounds = { ratio: 2, max: Number.POSITIVE_INFINITY, share: Number.POSITIVE_INFINITY, engine: null };
  const prompts = [
    { total: 100, computed: 100 },
    { total: 200, computed: 60 },
  ];
  const next = (total: number, computed = 60) => ({ total, computed });

  it("goes on while its prompts are within the ratio on average, and the next one within the limit", () => {
    expect(endOfEpoch(prompts, next(300), 100, bounds)).toBeNull();
    expect(endOfEpoch(prompts, next(301), 100, bounds)).toBe("ratio");
    expect(endOfEpoch(prompts, next(250), 100, { ...bounds, max: 249 })).toBe("limit");
    expect(endOfEpoch(prompts, next(250), 100, { ...bounds, share: 249 })).toBe("share");
    // The client's own window is what there is to send.
    expect(endOfEpoch(prompts, next(250), 250, { ...bounds, share: 249 })).toBeNull();
  });

  it("ends, by cost, with the first prompt that costs more than those before it on average", () => {
    const cost = { kind: "money", uncached: 1, written: 1, cached: 0.1 } as const;
    const engine = { cost, blockTokens: 1, minimumPrefixTokens: 0 };
    // 100 and 60 + 14: 87 on average.
    expect(endOfEpoch(prompts, next(330, 60), 1_000, { ...bounds, engine })).toBeNull();
    expect(endOfEpoch(prompts, next(331, 60), 1_000, { ...bounds, engine })).toBe("cost");
  });
});

describe("the newest messages within a limit", () => {
  const call: ChatMessage = { role: "assistant", content: null, tool_calls: [{ id: "1" }] };
  const result: ChatMessage = { role: "tool", tool_call_id: "1", content: "done" };
  const kinds = [
    [{ role: "user", content: "a question" }],
    [{ role: "assistant", content: "an answer" }],
    [call, result],
  ];

  it("are all, or begin with a user's message: as many as fit but at least the last question", () => {
    const turns = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 12 });
    const property = fc.property(turns, fc.nat(200), (listed, tokens) => {
      const messages: ChatMessage[] = listed.flat();
      const kept = newestWithin(messages, tokens, countTokens);
      expect(messages.slice(messages.length - kept.length)).toEqual(kept);
      const questions = messages.flatMap(({ role }, at) => (role === "user" ? [at] : []));
      const fitsWhole = messagesTokens(messages, countTokens) <= tokens;
      if (questions.length === 0 || fitsWhole) {
        expect(kept).toEqual(messages);
        return;
      }
      const from = messages.length - kept.length;
      expect(questions).toContain(from);
      const isWithin = (at: number) => messagesTokens(messages.slice(at), countTokens) <= tokens;
      expect(questions.find(isWithin) ?? questions.at(-1)).toBe(from);
    });
    fc.assert(property);
  });
});
