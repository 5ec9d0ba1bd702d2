import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { type ComposedRecord, DamagedRecordError, SaidCodec } from "../../../src/store/journal/said-codec.js";
import { anyDigest } from "./any-rows.js";
import { anyComposedRecord, anyReport } from "./any-said.js";
import { anyDamage, damaged, expectRefusedOrRead } from "./damaged-texts.js";

const KEY = randomBytes(32);
const seal = new DigestSeal(() => KEY);
const codec = new SaidCodec(seal);

describe("a composed request as text", () => {
  it("is read as it was written, erased messages included", () => {
    const property = fc.property(anyComposedRecord, (record) => {
      const text = codec.encodeComposed(record);
      expect(codec.decodeComposed(text)).toEqual(record);
      expect(codec.decodeTurns(text)).toEqual(record.turns);
      expect(codec.sealedSections(text)).toEqual(record.sections.map((section) => seal.seal(section)));
    });
    fc.assert(property, { numRuns: 600 });
  });

  it("gives messages, injections and plans with their fields in the same order, in which they are sent and compared", () => {
    const property = fc.property(anyComposedRecord, (record) => {
      const read = codec.decodeComposed(codec.encodeComposed(record));
      for (const [at, { given, turn }] of read.turns.entries()) {
        expect(JSON.stringify(given)).toBe(JSON.stringify(record.turns[at]?.given));
        expect(JSON.stringify(turn.injection)).toBe(JSON.stringify(record.turns[at]?.turn.injection));
      }
      expect(JSON.stringify(read.request?.answer.plan)).toBe(JSON.stringify(record.request?.answer.plan));
    });
    fc.assert(property, { numRuns: 300 });
  });

  it("has no digest that is not sealed", () => {
    const property = fc.property(anyComposedRecord, (record) => {
      const text = codec.encodeComposed(record);
      for (const { turn } of record.turns)
        for (const digest of [turn.head, turn.prompt, turn.anchor, ...turn.given, ...turn.meant])
          expect(text).not.toContain(digest);
      for (const digest of [...record.sections, record.request?.body]) expect(text).not.toContain(digest ?? "none");
    });
    fc.assert(property);
  });

  it("is refused without a word of it where its damage keeps it from being read", () => {
    const property = fc.property(anyComposedRecord, anyDamage, (record, damage) =>
      expectRefusedOrRead(damaged(codec.encodeComposed(record), damage), "a composed request", (text) =>
        codec.decodeComposed(text),
      ),
    );
    fc.assert(property, { numRuns: 1_500 });
  });

  it("is written as it was read: a check compares the two", () => {
    const property = fc.property(anyComposedRecord, (record) => {
      const text = codec.encodeComposed(record);
      expect(codec.encodeComposed(codec.decodeComposed(text))).toBe(text);
    });
    fc.assert(property, { numRuns: 300 });
  });

  it("is written with as many digests as messages, or not at all", () => {
    const property = fc.property(anyComposedRecord, anyDigest, (record, digest) => {
      const [first, ...rest] = record.turns as [ComposedRecord["turns"][0]];
      const turn = { ...first.turn, given: [...first.turn.given, digest] };
      expect(() => codec.encodeComposed({ ...record, turns: [{ ...first, turn }, ...rest] })).toThrow(
        "as many digests",
      );
    });
    fc.assert(property, { numRuns: 20 });
  });

  it.each([
    ["a turn that is none", "[1,[[1]],[],0]", /a composed request: not as it is written/],
    ["a section that is none", '[1,[],["secret"],0]', /a composed request: not as it is written/],
    ["a placement that there is not", '[1,[],[],["secret",{"m":[[1,"m",9,0]]}]]', /not as it is written/],
    ["another format", "[0,[],[],0]", /not of format 1/],
    ["a report", "[1,{}]", /a composed request: not as it is written/],
  ])("is refused: %s", (_title, text, complaint) => {
    expect(() => codec.decodeComposed(text)).toThrow(DamagedRecordError);
    expect(() => codec.decodeComposed(text)).toThrow(complaint);
    expect(() => codec.decodeComposed(text)).not.toThrow("secret");
  });
});

describe("a report and a forgotten memory as text", () => {
  it("are read as they were written", () => {
    const property = fc.property(anyReport, fc.array(anyDigest, { maxLength: 3 }), (report, sections) => {
      const [reported, forgotten] = [codec.encodeReported(report), codec.encodeForgotten(sections)];
      expect(codec.decodeReported(reported)).toEqual(report);
      expect(codec.decodeForgotten(forgotten)).toEqual(sections);
    });
    fc.assert(property, { numRuns: 300 });
  });
});
