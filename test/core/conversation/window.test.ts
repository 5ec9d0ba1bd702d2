import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { continuesEpoch, findCut, type HistoryCut } from "../../../src/core/conversation/window.js";
import type { ChatMessage } from "../../../src/core/text/message.js";

const say = (text: string, at = 0): ChatMessage => ({ role: at % 2 === 0 ? "user" : "assistant", content: text });
const saying = (texts: readonly string[]) => texts.map((text) => say(text));

/** The same by trying everything: first what is pinned, then the longest run. */
function triedCut(stored: readonly string[], sent: readonly string[]): HistoryCut | null {
  let alike = 0;
  while (alike < stored.length && stored[alike] === sent[alike]) alike++;
  if (alike === stored.length) return null;
  for (const pinned of new Set([alike, 0])) {
    for (let from = pinned; from < stored.length; from++) {
      const run = stored.slice(from);
      const isRun = run.every((text, at) => sent[pinned + at] === text);
      if (isRun && sent.length > pinned + run.length) return from === pinned ? null : { pinned, from };
    }
  }
  return null;
}

describe("a history that its client cut", () => {
  it("is recognised as what trying every cut gives", () => {
    const word = fc.constantFrom("a", "b", "c");
    const property = fc.property(
      fc.array(word, { maxLength: 12 }),
      fc.array(word, { minLength: 1, maxLength: 8 }),
      fc.nat(12),
      fc.nat(3),
      (stored, other, from, pinned) => {
        expect(findCut(saying(stored), saying(other))).toEqual(triedCut(stored, other));
        const window = [...stored.slice(0, pinned), ...stored.slice(from), ...other];
        expect(findCut(saying(stored), saying(window))).toEqual(triedCut(stored, window));
      },
    );
    fc.assert(property, { numRuns: 500 });
  });

  it("is compared by meaning", () => {
    const stored = saying(["one", "two", "three"]);
    const parts: ChatMessage = { role: "user", content: [{ type: "text", text: "three" }] };
    expect(findCut(stored, [parts, say("new")])).toEqual({ pinned: 0, from: 2 });
  });

  it("may pin its first message, or put a summary there that stays", () => {
    const stored = saying(["summary", "one", "two", "three", "four"]);
    expect(findCut(stored, saying(["summary", "three", "four", "new"]))).toEqual({ pinned: 1, from: 3 });
    expect(findCut(stored, saying(["another summary", "three", "four", "new"]))).toBeNull();
  });

  it("is found in time in proportion to its length, whatever repeats in it", () => {
    const many = Array.from({ length: 10_000 }, () => "ok");
    expect(findCut(saying(["first", ...many]), saying([...many.slice(1), "new"]))).toEqual({ pinned: 0, from: 2 });
  });
});

describe("an epoch", () => {
  it("goes on while the average of its prompts is within the ratio, and the next one within the limit", () => {
    const epoch = { prompts: 2, sent: 300, exact: 100, max: null };
    expect(continuesEpoch({ ...epoch, next: 300 }, 2)).toBe(true);
    expect(continuesEpoch({ ...epoch, next: 301 }, 2)).toBe(false);
    expect(continuesEpoch({ ...epoch, sent: 200, next: 101 }, 1)).toBe(false);
    expect(continuesEpoch({ ...epoch, next: 250, max: 249 }, 2)).toBe(false);
  });
});
