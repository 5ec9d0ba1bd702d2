import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalText } from "../../../src/core/text/memory-text.js";
import { hostileText } from "../escaping/hostile-text.js";

describe("canonical text", () => {
  it("has one kind of line break and no white space at the ends", () => {
    expect(canonicalText(" \ta\r\nb\rc\u2028d\u2029e\u0085f\vg\fh\n\n ")).toBe("a\nb\nc\nd\ne\nf\ng\nh");
  });

  it("leaves everything inside as it is", () => {
    const text = "a  b\n\n\n  c\t[7] </memories> \\ \u0000 \u202e é e\u0301 👩‍👩‍👧";
    expect(canonicalText(text)).toBe(text);
  });

  it("has no lone surrogates, which would not come back from UTF-8 as they were", () => {
    expect(canonicalText("\ud83d a \udc00 😀")).toBe("\ufffd a \ufffd 😀");
    const anyText = fc.oneof(
      hostileText,
      fc.array(fc.nat({ max: 0xffff })).map((units) => String.fromCharCode(...units)),
    );
    fc.assert(
      fc.property(anyText, (text) => {
        const canonical = canonicalText(text);
        expect(Buffer.from(canonical, "utf8").toString("utf8")).toBe(canonical);
        expect(canonicalText(canonical)).toBe(canonical);
      }),
    );
  });
});
