import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sentencesOf } from "../../../src/core/text/memory-text.js";

describe("sentences", () => {
  it.each([
    ["Ana likes tea. She lives in Porto.", ["ana likes tea", "she lives in porto"]],
    ["  Ana   likes\ntea ", ["ana likes tea"]],
    ["- Ana likes tea", ["ana likes tea"]],
    ["Ana likes tea!! Really?! Yes…", ["ana likes tea", "really?", "yes"]],
    ["Ana likes tea?", ["ana likes tea?"]],
    ["Cafe\u0301", ["caf\u00e9"]],
    ["アナはお茶が好き。ポルトに住む。", ["アナはお茶が好き", "ポルトに住む"]],
    ["It is -5 °C at 3.5 km. Ana waits.", ["it is -5 °c at 3.5 km", "ana waits"]],
    ["❤", ["❤"]],
    ["...", []],
    ["I ❤ tea. 👍", ["i ❤ tea", "👍"]],
  ])("of %j are %j", (text, expected) => {
    expect(sentencesOf(text)).toEqual(expected);
  });

  it.each([
    ...["Dr. Ana likes tea.", "It is untrue, e.g. Ana likes tea.", "J. Ana likes tea.", "It is no. 5. Ana likes tea."],
    ...['Bob lied: "It rains. Ana likes tea. It snows."', "Bob lied («It rains. Ana likes tea. It snows.»)."],
    ...["It is untrue:\nAna likes tea.", "It is untrue that…\nana likes tea.", "It is untrue that Ana likes tea."],
    "Does Ana like it? Ana likes tea?",
  ])("are not seen in %j", (text) => {
    expect(sentencesOf(text)).not.toContain("ana likes tea");
  });

  it("have every letter, digit and symbol of the text, in its order", () => {
    const letters = (text: string) =>
      text
        .normalize("NFC")
        .toLowerCase()
        .normalize("NFC")
        .replace(/[^\p{L}\p{N}\p{S}]+/gu, "");
    const piece = fc.oneof(
      fc.constantFrom(". ", "? ", "! ", '"', "(", ")", "\n", "- ", "e.g. ", "。", "Ana", "tea"),
      fc.string({ unit: "grapheme", maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        expect(letters(sentencesOf(text).join(" "))).toBe(letters(text));
      }),
      { numRuns: 2_000 },
    );
  });
});
