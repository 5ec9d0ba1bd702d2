import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { unstorable } from "../../../src/core/index.js";
import { MAX_MESSAGES, messages } from "../../../src/service/fields/fields.js";
import { plainMessages } from "../../../src/service/fields/given-messages.js";

/** As JSON has them. */
const record = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record<T>(fields, { noNullPrototype: true });
const ROLES = ["system", "developer", "user", "assistant", "tool", "function"];
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\0", "\ud800", "a\udc00b", "😀", "line\nbreak"),
);
const plain = record({ role: fc.constantFrom(...ROLES), content: text });
/** What is nearly a plain message, or nothing like one. */
const other = fc.oneof(
  record({ role: fc.oneof(fc.constantFrom("User", "model", ""), fc.jsonValue()), content: text }),
  record({ role: fc.constantFrom(...ROLES), content: fc.jsonValue() }),
  record({ role: fc.constantFrom(...ROLES), content: text, name: fc.jsonValue() }),
  record({ content: text, text }),
  record({ role: fc.constantFrom(...ROLES) }),
  fc.jsonValue(),
  fc.anything(),
);

describe("chat messages accepted by their shape", () => {
  it("are ones that the schema accepts, and the same", () => {
    const list = fc.array(fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: other }), { maxLength: 6 });
    fc.assert(
      fc.property(list, (given) => {
        const accepted = plainMessages(given, MAX_MESSAGES);
        if (accepted === null) return;
        const read = messages.safeParse(given);
        expect(read.success).toBe(true);
        expect(accepted).toEqual(read.data);
      }),
      { numRuns: 2_000 },
    );
  });

  it("are all that have a role and a text each, and end with what is to be answered", () => {
    const storable = fc.string({ unit: "grapheme" }).filter((said) => unstorable(said) === null);
    const spoken = fc.array(record({ role: fc.constantFrom(...ROLES), content: storable }), { maxLength: 6 });
    const last = record({ role: fc.constantFrom("user", "tool", "function"), content: storable });
    fc.assert(
      fc.property(spoken, last, (before, question) => {
        const given = [...before, question];
        expect(plainMessages(given, MAX_MESSAGES)).toEqual(given);
      }),
    );
  });

  it("are not more than a request may have", () => {
    const message = { role: "user", content: "Hello" };
    expect(plainMessages([message, message], 2)).toHaveLength(2);
    expect(plainMessages([message, message, message], 2)).toBeNull();
  });

  it("have no role or text from elsewhere", () => {
    const inherited = Object.create({ role: "user", content: "Hello" }) as object;
    expect(plainMessages([Object.assign(inherited, { a: 1, b: 2 })], 2)).toBeNull();
  });
});
