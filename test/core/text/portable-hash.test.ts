import { hash as nodeHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { digestOf } from "../../../src/core/index.js";
import { hash } from "../../../src/core/text/portable-hash.js";

describe("the digest without node:crypto", () => {
  it("is that of the standard's examples", () => {
    const hex = (text: string) => Buffer.from(hash("sha256", text, "base64url"), "base64url").toString("hex");
    expect(hex("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });

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

  it("is node:crypto's at every length around the ends of blocks", () => {
    for (let length = 0; length <= 200; length++) {
      expect(hash("sha256", "é".repeat(length), "base64url")).toBe(digestOf("é".repeat(length)));
    }
    expect(hash("sha256", "x".repeat(1_000_001), "base64url")).toBe(digestOf("x".repeat(1_000_001)));
  });
});
