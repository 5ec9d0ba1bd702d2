import { hash as nodeHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { digestOf } from "../../../src/core/index.js";
import { hash } from "../../../src/core/text/portable-hash.js";

describe("the digest without node:crypto", () => {
  it("is node:crypto's, of any text", () => {
    const text = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme", maxLength: 400 }));
    fc.assert(
      fc.property(text, (value) => {
        expect(hash("sha256", value, "base64url")).toBe(nodeHash("sha256", value, "base64url"));
      }),
    );
    for (const value of ["\ud800", "a\udc00b", "\ud800\ud800"])
      expect(hash("sha256", value, "base64url")).toBe(digestOf(value));
  });
});
