import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_SCOPE } from "../../../src/core/index.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { DamagedRecordError } from "../../../src/store/journal/said-codec.js";
import { ScopeCodec } from "../../../src/store/journal/scope-codec.js";
import { anyScopeChanges, anyStoredScope, readRows } from "./any-rows.js";
import { anyDamage, damaged, expectRefusedOrRead } from "./damaged-texts.js";

const KEY = randomBytes(32);
const codec = new ScopeCodec(new DigestSeal(() => KEY));

describe("a scope's state as text", () => {
  it("is read as it was written, nodes without an anchor included", () => {
    const property = fc.property(anyStoredScope, (scope) => {
      expect(readRows(codec.decodeState(codec.encodeState(scope)))).toEqual(readRows(scope));
    });
    fc.assert(property, { numRuns: 400 });
  });

  it("has no digest that is not sealed", () => {
    const property = fc.property(anyStoredScope, (scope) => {
      const text = codec.encodeState(scope);
      for (const { anchor } of scope.nodes) if (anchor !== null) expect(text).not.toContain(anchor);
      for (const { textDigest } of scope.register.blocks) expect(text).not.toContain(textDigest);
    });
    fc.assert(property);
  });

  it("is refused without a word of it where its damage keeps it from being read", () => {
    const property = fc.property(anyStoredScope, anyDamage, (scope, damage) =>
      expectRefusedOrRead(damaged(codec.encodeState(scope), damage), "a scope's state", codec.decodeState.bind(codec)),
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  const empty = codec.encodeState(EMPTY_SCOPE);

  it.each([
    ["another format", empty.replace("[1,", "[2,"), /state: not of format 1/],
    ["no counters", empty.replace("[1,1,1,0]", "null"), /state: not as it is written/],
    [
      "a digest that is none",
      empty.replace("[0,[]]", '[0,[[1,null,"secret",[],0,0,0,0,0,0,0]]]'),
      /not as it is written/,
    ],
    ["nothing", "", /state: not valid JSON/],
    ["an end that is missing", empty.slice(0, -1), /state: not valid JSON/],
  ])("is refused: %s", (_title, text, complaint) => {
    expect(text).not.toBe(empty);
    expect(() => codec.decodeState(text)).toThrow(DamagedRecordError);
    expect(() => codec.decodeState(text)).toThrow(complaint);
    expect(() => codec.decodeState(text)).not.toThrow("secret");
  });
});

describe("a scope's changes as text", () => {
  it("are read as they were written", () => {
    const property = fc.property(anyScopeChanges, (changes) => {
      expect(codec.decodeChanges(codec.encodeChanges(changes))).toEqual(changes);
    });
    fc.assert(property, { numRuns: 400 });
  });
});
