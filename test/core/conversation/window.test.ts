import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findWindow, type Window } from "../../../src/core/conversation/window.js";
import type { ChatMessage } from "../../../src/core/text/message.js";

const say = (text: string): ChatMessage => ({ role: "user", content: text });
const saying = (texts: readonly string[]) => texts.map(say);

/** The same by trying every run of stored messages at every place. */
function triedWindow(stored: readonly string[], sent: readonly string[]): Window | null {
  const isAlike = (count: number) => stored.slice(0, count).every((text, at) => text === sent[at]);
  if (stored.length < sent.length && isAlike(stored.length)) return null;
  for (let length = Math.min(stored.length, sent.length - 1); length > 0; length--) {
    for (let inFront = sent.length - 1 - length; inFront >= 0; inFront--) {
      const run = stored.slice(stored.length - length);
      if (!run.every((text, at) => sent[inFront + at] === text)) continue;
      const fresh = sent.length - inFront - length;
      if (length === stored.length) return { kind: "longer", inFront, fresh };
      if (inFront === 0) {
        const cut = stored.slice(0, stored.length - length);
        return sent.slice(length, -1).some((text) => cut.includes(text))
          ? { kind: "summarised" }
          : { kind: "cut", fresh };
      }
      if (!isAlike(1)) return { kind: "summarised" };
      return inFront === 1 ? { kind: "pinned", fresh } : null;
    }
  }
  return null;
}

describe("a history that its client cut", () => {
  it("is recognised as what trying every run gives", () => {
    const word = fc.constantFrom("a", "b", "c");
    const property = fc.property(
      fc.array(word, { maxLength: 12 }),
      fc.array(word, { minLength: 1, maxLength: 8 }),
      fc.nat(12),
      fc.nat(3),
      (stored, other, from, pinned) => {
        expect(findWindow(saying(stored), saying(other))).toEqual(triedWindow(stored, other));
        const window = [...stored.slice(0, pinned), ...stored.slice(from), ...other];
        expect(findWindow(saying(stored), saying(window))).toEqual(triedWindow(stored, window));
      },
    );
    fc.assert(property, { numRuns: 500 });
  });

  it.each<readonly [string, ChatMessage]>([
    ["OpenAI", { role: "assistant", content: null, tool_calls: [{ id: "1", type: "function" }] }],
    ["Anthropic", { role: "assistant", content: [{ type: "tool_use", id: "1", name: "weather", input: {} }] }],
    ["the AI SDK", { role: "assistant", content: [{ type: "tool-call", toolCallId: "1", toolName: "t", input: {} }] }],
  ])("may be pruned of its tool calls and their results, as %s has them", (_api, call) => {
    const result: ChatMessage = { role: "tool", tool_call_id: "1", content: "sunny" };
    const stored = [say("so?"), say("weather?"), call, result, say("sunny!"), say("thanks"), call, result];
    expect(findWindow(stored, saying(["so?", "weather?", "sunny!", "thanks", "new"]))).toEqual({
      kind: "pruned",
      fresh: 1,
    });
    expect(findWindow(stored, saying(["weather?", "sunny!", "thanks", "new"]))).toEqual({ kind: "pruned", fresh: 1 });
    expect(findWindow(stored, saying(["weather?", "sunny?", "thanks", "new"]))).toBeNull();
    const other = { ...result, content: "rain" };
    expect(findWindow(stored.slice(0, 4), [...stored.slice(0, 3), other, say("rain!"), say("new")])).toBeNull();
  });

  it("is found in time in proportion to its length, whatever repeats in it", () => {
    const many = Array.from({ length: 10_000 }, () => "ok");
    expect(findWindow(saying(["first", ...many]), saying([...many.slice(1), "new"]))).toEqual({
      kind: "cut",
      fresh: 1,
    });
  });
});
