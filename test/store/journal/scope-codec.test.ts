import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_SCOPE } from "../../../src/core/index.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { DamagedRecordError } from "../../../src/store/journal/damaged-record.js";
import { ScopeCodec } from "../../../src/store/journal/scope-codec.js";
import { anyScopeChanges, anyStoredScope, readRows } from "./any-rows.js";
import { anyDamage, damaged, expectRefusedOrWritable } from "./damaged-texts.js";

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
      // A block template's id is no digest of what a user wrote.
      const text = codec.encodeState({ ...scope, register: { ...scope.register, versions: [] } });
      for (const { anchor } of scope.nodes) if (anchor !== null) expect(text).not.toContain(anchor);
      for (const { textDigest } of scope.register.blocks) expect(text).not.toContain(textDigest);
    });
    fc.assert(property);
  });

  it("is refused with what is wrong, or has a value, where it is damaged", () => {
    const whole = {
      decode: (text: string) => codec.decodeState(text),
      encode: codec.encodeState.bind(codec),
      what: "a scope's state",
    };
    const property = fc.property(anyStoredScope, anyDamage, (scope, damage) =>
      expectRefusedOrWritable(damaged(codec.encodeState(scope), damage), whole),
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  const empty = codec.encodeState(EMPTY_SCOPE);

  it.each([
    ["another format", empty.replace("[1,", "[2,"), /state: expected format 1, at \[0\]/],
    ["no counters", empty.replace("[1,1,1,0]", "[1,1,1]"), /state: .*at \[1\]/],
    ["a counter that is none", empty.replace("[1,1,1,0]", '[1,1,"1",0]'), /expected a counter, at \[1\]\[2\]/],
    ["half of a number", empty.replace("[1,1,1,0]", "[1,1,1.5,0]"), /expected a counter, at \[1\]\[2\]/],
    [
      "a digest that is none",
      empty.replace("[0,[]]", '[0,[[1,null,"secret",[],0,0,0,0,0,0,0]]]'),
      /expected a node, at \[4\]\[1\]\[0\]\[2\]/,
    ],
    ["an element too many", empty.replace(/\]$/, ",0]"), /state: .*, at its top/],
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

  it("are refused with what is wrong, or have a value, where they are damaged", () => {
    const whole = {
      decode: (text: string) => codec.decodeChanges(text),
      encode: codec.encodeChanges.bind(codec),
      what: "a scope's changes",
    };
    const property = fc.property(anyScopeChanges, anyDamage, (changes, damage) =>
      expectRefusedOrWritable(damaged(codec.encodeChanges(changes), damage), whole),
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  it("are not taken for a state, nor a state for them", () => {
    const property = fc.property(anyStoredScope, anyScopeChanges, (scope, changes) => {
      expect(() => codec.decodeState(codec.encodeChanges(changes))).toThrow(DamagedRecordError);
      expect(() => codec.decodeChanges(codec.encodeState(scope))).toThrow(DamagedRecordError);
    });
    fc.assert(property);
  });
});
