import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bearerToken } from "../../../src/http/guards/access.js";

describe("a bearer token", () => {
  it("is what follows the scheme, in whatever case that is written", () => {
    const token = fc.stringMatching(/^[\w.~+/-]{1,40}( [\w=]{1,5})?$/);
    const scheme = fc.mixedCase(fc.constant("bearer"));
    const spaces = fc.integer({ min: 1, max: 3 }).map((count) => " ".repeat(count));
    fc.assert(
      fc.property(scheme, spaces, token, spaces, (name, before, given, after) => {
        expect(bearerToken(`${name}${before}${given}`)).toBe(given);
        expect(bearerToken(`${name}${before}${given}${after}`)).toBe(given);
      }),
    );
  });

  it.each([
    undefined,
    "",
    "Bearer",
    "Bearer ",
    "Bearer    ",
    "Basic dXNlcjpwYXNz",
    "Bearertoken",
    "token",
    "x Bearer token",
  ])("is not in %o", (authorization) => {
    expect(bearerToken(authorization)).toBeNull();
  });
});
