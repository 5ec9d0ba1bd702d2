import { describe, expect, it } from "vitest";
import { unstorable, unstorableWithin } from "../../../src/core/text/memory-text.js";

describe("text that cannot be stored as it is", () => {
  it("is text with a NUL character or half of a surrogate pair", () => {
    for (const text of ["", "tea", "😀 👩‍👩‍👧", "\u0001\u202e\ufeff\ufffd"]) expect(unstorable(text)).toBeNull();
    expect(unstorable("a\0b")).toMatch(/^must not/);
    for (const text of ["\ud83d", "a\udc00b", "\udc00\ud800"]) expect(unstorable(text)).toMatch(/^must not/);
  });

  it("is found at any depth of a JSON value, in names too", () => {
    for (const value of [null, 7, true, [], {}, { a: [{ b: "tea" }, null] }])
      expect(unstorableWithin(value)).toBeNull();
    for (const value of ["\0", ["\0"], { a: [{ b: "\ud83d" }] }, { "\0": 1 }]) {
      expect(unstorableWithin(value)).toMatch(/^must not/);
    }
  });
});
