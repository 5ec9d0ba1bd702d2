import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editedJson, repeatedNames, valueText } from "../../src/apis/api/edited-json.js";

function edited(json: string, change: (value: never) => unknown): string {
  const value: unknown = JSON.parse(json);
  return editedJson(json, value, change(value as never));
}

describe("JSON that is edited in place", () => {
  it("keeps numbers, escapes, key order and white space of what stays", () => {
    const json = '{ "seed" : 12345678901234567890, "t": 1.0,\n "name":"caf\\u00e9", "content":"h\\u00e9" , "n": null }';
    const next = edited(json, (body: object) => ({ more: { a: 1 }, ...body, content: "list\n\nhé" }));
    expect(next).toBe(
      '{ "seed" : 12345678901234567890, "t": 1.0,\n "name":"caf\\u00e9", "content":"list\\n\\nh\\u00e9" , "n": null,"more":{"a":1} }',
    );
  });

  it.each([
    ['{"a":1,"b":2,"c":3}', ({ b, c }: Record<string, number>) => ({ b, c }), '{"b":2,"c":3}'],
    ['{"a":1,"b":2,"c":3}', ({ a, c }: Record<string, number>) => ({ a, c }), '{"a":1,"c":3}'],
    ['{"a":1,"b":2,"c":3}', ({ c }: Record<string, number>) => ({ c }), '{"c":3}'],
    ['{"a":1,"b":2}', ({ a }: Record<string, number>) => ({ a }), '{"a":1}'],
    ['{ "a":1 }', () => ({ d: 4 }), '{"d":4  }'],
    ["{}", () => ({ d: 4 }), '{"d":4}'],
    ['{"a":1,"a":2,"b":3}', ({ b }: Record<string, number>) => ({ b }), '{"b":3}'],
    ["[1.0, 2.0]", ([a, b]: number[]) => [0, a, 5, b, 6], "[0,1.0, 5,2.0,6]"],
    ["[1.0, 2.0, 3.0]", ([, b]: number[]) => [b], "[2.0]"],
    ["[ ]", () => [1], "[1 ]"],
  ])("edits %s", (json, change, next) => {
    expect(edited(json, change as never)).toBe(next);
  });

  it("spells the client's text as it did where that becomes a part", () => {
    const json = '{"role":"user","content":"h\\u00e9"}';
    const parts = (message: object) => ({
      ...message,
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b hé" },
      ],
    });
    expect(edited(json, parts)).toBe(
      '{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b h\\u00e9"}]}',
    );
  });

  it("says the new value, whatever the two are, and is unmodified where nothing changed", () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    fc.assert(
      fc.property(value, value, fc.nat(3), (own, next, spaces) => {
        const json = JSON.stringify(own, null, spaces);
        const given: unknown = JSON.parse(json);
        const expected: unknown = JSON.parse(JSON.stringify(next));
        expect(JSON.parse(editedJson(json, given, expected))).toEqual(expected);
        expect(editedJson(json, given, JSON.parse(json))).toBe(json);
      }),
    );
  });

  it("says the new value where parts of a list or object are removed, added and changed", () => {
    const item = fc.oneof(
      fc.record({ role: fc.constantFrom("user", "assistant"), content: fc.string() }),
      fc.record({ type: fc.constant("text"), text: fc.string() }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constant(null),
    );
    fc.assert(
      fc.property(fc.array(item), fc.array(fc.tuple(fc.nat(30), fc.option(item), fc.boolean())), (own, changes) => {
        const next: unknown[] = JSON.parse(JSON.stringify(own)) as unknown[];
        for (const [at, added, removes] of changes)
          next.splice(at, removes ? 1 : 0, ...(added === null ? [] : [added]));
        const json = JSON.stringify({ messages: own, n: 1 }, null, 1);
        const expected: unknown = JSON.parse(JSON.stringify({ messages: next, n: 1 }));
        expect(JSON.parse(editedJson(json, JSON.parse(json), expected))).toEqual(expected);
      }),
    );
  });

  it("compares each level once", () => {
    const json = `${'{"a":'.repeat(60)}1${"}".repeat(60)}`;
    expect(editedJson(json, JSON.parse(json), JSON.parse(json))).toBe(json);
  });

  it("finds names that are given twice, and a field's own text", () => {
    expect([...repeatedNames('{"a":{"b":1,"b":2},"\\u0061":[1]}')]).toEqual(["a"]);
    expect(valueText(' {"a":{"b":1.0 } , "c":2}', "a")).toBe('{"b":1.0 }');
    expect(valueText("[]", "a")).toBeNull();
  });
});
