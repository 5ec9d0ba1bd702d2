import { describe, expect, it } from "vitest";
import { QuoteSearch } from "../../../src/core/index.js";

describe("looking for quotes", () => {
  it.each([20, 199, 200, 201, 1_000])("finds a text of %i letters, and no part of it that says little", (length) => {
    const text = Array.from({ length }, (_, at) => String.fromCharCode(97 + ((at * at + 7 * at) % 26))).join("");
    const search = new QuoteSearch([text]);
    expect(search.isIn(JSON.stringify([{ said: `As I said: ${text}!` }]))).toBe(true);
    expect(search.isIn(text.slice(0, Math.min(length - 1, 99)))).toBe(false);
  });
});
