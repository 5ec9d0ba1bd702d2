import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CUT_MARK, cutText } from "../../../src/core/index.js";

const graphemes = new Intl.Segmenter("und", { granularity: "grapheme" });
const long = fc
  .array(
    fc.oneof(
      fc.constantFrom("👩‍👩‍👧", "é", "e\u0301", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🇵🇹", "\r\n", "한국", "a", " "),
      fc.string({ unit: "grapheme" }),
    ),
    {
      maxLength: 400,
    },
  )
  .map((pieces) => pieces.join(""));

describe("a text that is too long", () => {
  it("is cut where a grapheme ends, says so, and is within the limit", () => {
    fc.assert(
      fc.property(long, fc.integer({ min: 10, max: 600 }), (text, max) => {
        const cut = cutText(text, max);
        expect(cut.length).toBeLessThanOrEqual(max);
        if (text.length <= max) {
          expect(cut).toBe(text);
          return;
        }
        expect(cut.endsWith(CUT_MARK)).toBe(true);
        const kept = cut.slice(0, -CUT_MARK.length);
        const ends = [...graphemes.segment(text)].map(({ index }) => index);
        expect(ends).toContain(kept.length);
        expect(text.startsWith(kept)).toBe(true);
        // No more is taken away than the grapheme that did not fit.
        expect(ends.find((end) => end > kept.length) ?? text.length).toBeGreaterThan(max - CUT_MARK.length);
      }),
      { numRuns: 500 },
    );
  });

  it("is cut within a grapheme that has no end, between two code points", () => {
    const endless = `😀${"\u0301".repeat(5_000)}`;
    expect(cutText(endless, 1_000)).toBe(`${endless.slice(0, 1_000 - CUT_MARK.length)}${CUT_MARK}`);
    const flags = `a${"🇵🇹".repeat(2_000)}`;
    expect(cutText(flags, 5_000).slice(0, -CUT_MARK.length).length % 4).toBe(1);
    const faces = `${"\u200d😀".repeat(5_000)}`;
    expect(cutText(faces, 1_001)).not.toMatch(/\p{Surrogate}/u);
  });
});
