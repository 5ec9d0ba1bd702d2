import fc from "fast-check";
import { O200K_TOKEN_SPLIT_REGEX } from "gpt-tokenizer/encodingParams/constants";
import { describe, expect, it } from "vitest";
import { endOfAsciiPiece } from "../../src/cli/ascii-pieces.js";

/** The pieces of a text up to the first whose end depends on a character that is not ASCII. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  // Behind its end there is what was there before.
  const units = new Uint16Array(text.length + 3).fill("s".charCodeAt(0));
  for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at);
  while (from < text.length) {
    const end = endOfAsciiPiece({ units, length: text.length }, from);
    if (end < 0) break;
    pieces.push(text.slice(from, end));
    from = end;
  }
  return pieces;
}

const bit = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(..." \n\r\t/'.,-_aZs09", "'ll", "'VE", "'Re", "it's", "  ", "\r\n", "HELLOworld"),
  },
  { weight: 2, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 6 }) },
);
const foreign = fc.constantFrom("é", "\u00a0", "\u0301", "茶", "\u2028", "ſ", "\u212a", "٣", "👩");

describe("splitting ASCII into pieces", () => {
  it("is the tokenizer's pattern's split", () => {
    const same = fc.property(fc.array(bit, { maxLength: 16 }), (bits) => {
      const text = bits.join("");
      expect(piecesOf(text)).toEqual(text.match(O200K_TOKEN_SPLIT_REGEX) ?? []);
    });
    fc.assert(same, { numRuns: 5_000 });
  });

  it("ends where another character may belong to the piece: what was split before is right, and what follows splits on its own", () => {
    const same = fc.property(fc.array(fc.oneof({ weight: 5, arbitrary: bit }, foreign), { maxLength: 12 }), (bits) => {
      const text = bits.join("");
      const pieces = piecesOf(text);
      const rest = text.slice(pieces.join("").length);
      expect([...pieces, ...(rest.match(O200K_TOKEN_SPLIT_REGEX) ?? [])]).toEqual(
        text.match(O200K_TOKEN_SPLIT_REGEX) ?? [],
      );
    });
    fc.assert(same, { numRuns: 5_000 });
  });

  it("covers every text, whatever it is made of: what is behind a piece is another one", () => {
    const covered = fc.property(fc.string({ unit: "binary" }), (text) => {
      expect((text.match(O200K_TOKEN_SPLIT_REGEX) ?? []).join("")).toBe(text);
    });
    fc.assert(covered, { numRuns: 2_000 });
  });
});
