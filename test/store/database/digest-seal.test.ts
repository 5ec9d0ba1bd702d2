import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Digest } from "../../../src/core/index.js";
import { DigestSeal, type SealedDigest } from "../../../src/store/database/digest-seal.js";

const KEY = randomBytes(32);
const seal = new DigestSeal(() => KEY);
const anyDigest = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString("base64url") as Digest);

describe("sealed digests", () => {
  it("are opened to what was sealed, one at a time and all at once", () => {
    const property = fc.property(fc.array(anyDigest, { maxLength: 20 }), (digests) => {
      const sealed = digests.map((digest) => seal.seal(digest));
      expect(sealed.every((one) => /^[\w-]{42}[AEIMQUYcgkosw048]$/.test(one))).toBe(true);
      expect(sealed.map((one) => seal.open(one))).toEqual(digests);
      expect(seal.openAll(sealed)).toEqual(digests);
    });
    fc.assert(property);
  });

  it.each([
    ["cut short", (sealed: string) => sealed.slice(0, 20)],
    ["too long", (sealed: string) => `${sealed.slice(0, 40)}AAAA`],
    ["empty", () => ""],
  ])("are refused wherever they stand among others: %s", (_title, damage) => {
    const whole = seal.seal(randomBytes(32).toString("base64url") as Digest);
    const damaged = damage(whole) as SealedDigest;
    expect(() => seal.open(damaged)).toThrow(/damaged digest/);
    for (const all of [[damaged, whole], [whole, damaged], [damaged]]) {
      expect(() => seal.openAll(all)).toThrow(/damaged digest/);
    }
  });
});
