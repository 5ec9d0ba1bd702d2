import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerText, StopText } from "../../../src/engines/embedded/generation.js";

describe("the text of an answer", () => {
  /** One token for each byte: the worst that a tokenizer can do to a character. */
  const detokenize = (tokens: readonly number[]) => Buffer.from(tokens).toString();

  it("comes in whole characters, however many tokens one takes", () => {
    const text = new AnswerText<number>(detokenize);
    const handed = [...Buffer.from("naïve 🎉!")].map((byte) => text.push(byte));
    expect(handed.filter((piece) => piece !== "")).toEqual(["n", "a", "ï", "v", "e", " ", "🎉", "!"]);
    expect(text.rest()).toBe("");
  });

  it("hands on what never becomes a character, in the end or after a while", () => {
    const text = new AnswerText<number>(detokenize);
    expect(text.push(0xf0)).toBe("");
    expect(text.rest()).toBe("\ufffd");
    const stray = Array.from({ length: 20 }, () => text.push(0x80)).join("");
    expect(stray + text.rest()).toBe("\ufffd".repeat(20));
  });
});

describe("a stop text", () => {
  const handed = (stops: readonly string[], pieces: readonly string[]) => {
    const stop = new StopText(stops);
    let text = "";
    for (const piece of pieces) {
      const { text: more, stopped } = stop.push(piece);
      text += more;
      if (stopped) return { text, stopped };
    }
    return { text: text + stop.rest(), stopped: false };
  };

  it.each([
    [["END"], ["one END two"], { text: "one ", stopped: true }],
    [["END"], ["one E", "N", "D two"], { text: "one ", stopped: true }],
    [["END"], ["one E", "N"], { text: "one EN", stopped: false }],
    [["b", "ab"], ["xab"], { text: "x", stopped: true }],
    [["aab"], ["aa", "ab"], { text: "a", stopped: true }],
    [[""], ["text"], { text: "text", stopped: false }],
  ])("%j cuts %j", (stops, pieces, expected) => {
    expect(handed(stops, pieces)).toEqual(expected);
  });

  it("cuts the same, whatever the pieces", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(letters, { minLength: 1, maxLength: 3 }),
        fc.array(letters, { maxLength: 8 }),
        (stops, pieces) => {
          const whole = handed(stops, [pieces.join("")]);
          const cut = handed(stops, pieces);
          expect(cut.stopped).toBe(whole.stopped);
          // A shorter stop text may be seen before a longer one that began earlier has ended.
          expect(cut.text.startsWith(whole.text)).toBe(true);
          if (!whole.stopped) expect(cut.text).toBe(whole.text);
        },
      ),
    );
  });
});
