import { describe, expect, it } from "vitest";
import { visibleText } from "../../../src/eval/base/aligned-table.js";

describe("visibleText", () => {
  it.each([
    ["a\r\n\tb", "a b"],
    ["\u202eevil\u2066\ufeff", "[U+202E]evil[U+2066][U+FEFF]"],
    ["\u0000\u001b[31m\u0085", "[U+0000][U+001B][31m[U+0085]"],
    ["👩‍👩‍👧 नमस्ते é", "👩‍👩‍👧 नमस्ते é"],
    ["\ud800", "[U+D800]"],
  ])("of %j is %j", (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });
});
