import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { roundedNumbers, withExactNumbers, withPlainNumbers } from "../../../src/core/text/json.js";

/** JSON as a client writes it, with integers of any size, and texts that look like them. */
const { json } = fc.letrec<{ json: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.bigInt(-(2n ** 70n), 2n ** 70n).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^["\\ \d]{0,40}$/)).map((text) => JSON.stringify(text)),
    fc.constantFrom("null", "true", "9007199254740992", "-9007199254740993", '"\\\\"', '"\\\\\\""'),
    fc.array(tie("json"), { maxLength: 4 }).map((items) => `[${items.join(" , ")}]`),
    fc
      .array(fc.tuple(fc.string(), tie("json")), { maxLength: 4 })
      .map((fields) => `{${fields.map(([name, value]) => `${JSON.stringify(name)}: ${value}`).join()}}`),
  ),
}));

describe("numbers that JavaScript has not", () => {
  it("are what they were once JSON is written again, and as JavaScript has them where they are rounded", () => {
    fc.assert(
      fc.property(json, (given) => {
        const exact = withExactNumbers(given);
        expect(withPlainNumbers(exact)).toBe(given);
        expect(roundedNumbers(JSON.parse(exact))).toEqual(JSON.parse(given));
        const within = (text: string, levels: number): string =>
          levels === 0 ? text : within(JSON.stringify({ arguments: text }), levels - 1);
        for (const levels of [1, 2, 3]) expect(withPlainNumbers(within(exact, levels))).toBe(within(given, levels));
      }),
    );
  });

  it("keep every digit where a value is parsed and written", () => {
    const given = '{"id":12345678901234567890,"all":[-9223372036854775808,9007199254740993,7]}';
    expect(withPlainNumbers(JSON.stringify(JSON.parse(withExactNumbers(given))))).toBe(given);
  });

  it("are those of 2^53 and more alone: other JSON is the same text", () => {
    for (const same of ['{"at":1700000000000000,"said":"12345678901234567890","f":1.2345678901234567890}', "[", '"'])
      expect(withExactNumbers(same)).toBe(same);
  });

  it("are no text of the sender's, however it is written", () => {
    const forged = "\uf8ffmemprefix:number:7";
    const escaped = [...forged].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
    for (const text of [`"${forged}"`, `"${escaped}"`, JSON.stringify(`{"a":"${forged}"}`)]) {
      const sent = `{"id":12345678901234567,"content":${text}}`;
      const { content } = JSON.parse(withPlainNumbers(withExactNumbers(sent))) as { readonly content: unknown };
      expect(content).toBe(String(JSON.parse(text)).replace("\uf8ff", ""));
      expect(withExactNumbers(text.slice(0, -1))).toBe(text.slice(0, -1));
    }
  });
});
