import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type KnownTool, toolsToSend } from "../../../src/core/prompt/tools.js";

const anyTool = fc.record({ name: fc.constantFrom("a", "b", "c", "d"), schema: fc.jsonValue({ maxDepth: 3 }) });

const anyTools = fc.uniqueArray(anyTool, { selector: (tool) => JSON.stringify(tool), maxLength: 8 });

/** The same JSON with the keys of every object turned round, and other white space. */
function turned(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(turned).join(" , ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).reverse();
  return `{ ${fields.map(([key, field]) => `${JSON.stringify(key)} : ${turned(field)}`).join(", ")} }`;
}

const sorted = (texts: readonly string[]) => texts.map((text) => turned(JSON.parse(text))).sort();

describe("the tools that a conversation sends", () => {
  it("are its first ones byte for byte, in whatever order and form an equal set comes", () => {
    const shuffled = anyTools.chain((tools) =>
      fc.tuple(fc.constant(tools), fc.shuffledSubarray(tools, { minLength: tools.length })),
    );
    fc.assert(
      fc.property(shuffled, ([tools, again]) => {
        const first = tools.map((tool) => JSON.stringify(tool));
        const before = toolsToSend(first, [], true);
        const after = toolsToSend(again.map(turned), before.known, true);
        expect([before.texts, after.texts]).toEqual([first, first]);
        expect(after.digest).toBe(before.digest);
        expect(after.known).toBe(before.known);
        expect(after.changes).toEqual({ added: [], removed: [], changed: [] });
      }),
    );
  });

  it("are always those of the request, and known ones come first in their order", () => {
    fc.assert(
      fc.property(fc.array(anyTools, { maxLength: 5 }), fc.boolean(), (turns, isStable) => {
        let known: readonly KnownTool[] = [];
        for (const turn of turns) {
          const given = turn.map(turned);
          const sent = toolsToSend(given, known, isStable);
          expect(sorted(sent.texts)).toEqual(sorted(given));
          if (!isStable) expect(sent.texts).toBe(given);
          if (isStable) {
            const places = sent.texts.map((text) => known.findIndex(({ json }) => json === text));
            const old = places.filter((place) => place >= 0).sort((a, b) => a - b);
            expect(places.slice(0, old.length)).toEqual(old);
            expect(sent.known.filter((tool) => tool.isSent).map(({ json }) => json)).toEqual(sent.texts);
          }
          known = sent.known;
        }
      }),
    );
  });

  it.each<[string, string, string]>([
    ["a mark", '{"name":"a","x":1}', '{"name":"a","cache_control":{"type":"ephemeral"},"x":1}'],
    ["a mark in front", '{"name":"a"}', '{"cache_control":null, "name":"a"}'],
    ["a mark in the function", '{"function":{"name":"a"}}', '{"function":{"name":"a","cache_control":{}}}'],
    ["another spelling of a text", '{"name":"\\u0061\\/"}', '{"name":"a/"}'],
  ])("are equal but for %s", (_, one, other) => {
    const { known } = toolsToSend([one], [], true);
    expect(toolsToSend([other], known, true).changes.added).toEqual([]);
  });

  it.each<[string, string, string]>([
    ["a digit that parsing loses", '{"name":"a","n":9007199254740993}', '{"name":"a","n":9007199254740992}'],
    ["a repeated key", '{"name":"a","n":1,"n":2}', '{"name":"a","n":2}'],
    ["the order of a list", '{"name":"a","required":["b","c"]}', '{"name":"a","required":["c","b"]}'],
    ["a property with a mark's name", '{"name":"a","p":{"cache_control":{}}}', '{"name":"a","p":{}}'],
  ])("differ by %s", (_, one, other) => {
    const { known } = toolsToSend([one], [], true);
    const { texts, changes } = toolsToSend([other], known, true);
    expect(texts).toEqual([other]);
    expect(changes).toEqual({ added: [], removed: [], changed: ["a"] });
  });

  it("are kept up to a million characters, those of earlier prompts last", () => {
    const tool = (name: string, length: number) => `{"name":"${name}","description":"${"x".repeat(length)}"}`;
    const [half, small] = [tool("half", 600_000), tool("small", 9)];
    const { known } = toolsToSend([half, small], [], true);
    const { known: next } = toolsToSend([tool("other", 600_000), small], known, true);
    expect(next.map(({ json }) => json)).toEqual([small, tool("other", 600_000)]);
    const { texts, known: none } = toolsToSend([tool("long", 2_000_000), small], next, true);
    expect(texts).toEqual([tool("long", 2_000_000), small]);
    expect(none).toEqual([]);
  });
});
