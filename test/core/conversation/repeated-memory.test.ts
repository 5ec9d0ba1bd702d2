import { describe, expect, it } from "vitest";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import { Chat, memory, UserScope } from "../compose/scope-fixture.js";

const porto = { ...memory("porto", "Ana's home is in Porto."), createdAt: "2026-05-01T10:00:00Z" };
const lisbon = { ...memory("lisbon", "Ana's home is in Lisbon."), createdAt: "2026-01-01T10:00:00Z" };
const tea = { ...memory("tea", "Bob likes green tea."), createdAt: "2026-06-01T10:00:00Z" };
const other = memory("other", "Carl keeps two bees.");

/** The line of a turn that retrieves these, after one that gave them all. */
function lineOf(retrieved: readonly RetrievedMemory[], options = {}): readonly string[] {
  const chat = new Chat(new UserScope(undefined, undefined, undefined, new Set(["web"])), "chat", undefined, options);
  chat.ask("One?", [...retrieved].reverse());
  chat.answer("1");
  return chat.ask("Two?", [...retrieved, memory("new", "Dora rows.")]).annotations;
}

describe("the line that repeats the best memory", () => {
  it("repeats the newer of two that say nearly the same of one subject, if it is second or third", () => {
    expect(lineOf([lisbon, porto])).toEqual([`Most relevant: ${porto.text}`]);
    expect(lineOf([lisbon, tea, porto])).toEqual([`Most relevant: ${porto.text}`]);
    expect(lineOf([lisbon, tea, other, porto])).toEqual([`Most relevant: ${lisbon.text}`]);
    expect(lineOf([porto, lisbon])).toEqual([`Most relevant: ${porto.text}`]);
  });

  it("repeats the best where another is newer but says something else, or is of another subject or of unknown age", () => {
    expect(lineOf([lisbon, tea])).toEqual([`Most relevant: ${lisbon.text}`]);
    const bob = { ...porto, id: tea.id, text: "Bob's home is in Porto." };
    expect(lineOf([lisbon, bob])).toEqual([`Most relevant: ${lisbon.text}`]);
    const { createdAt: _, ...undated } = porto;
    expect(lineOf([lisbon, undated])).toEqual([`Most relevant: ${lisbon.text}`]);
    expect(lineOf([{ ...lisbon, createdAt: "soon" }, porto])).toEqual([`Most relevant: ${lisbon.text}`]);
  });

  it("goes by when a text changed, in whatever form its time is", () => {
    expect(lineOf([{ ...lisbon, updatedAt: "2026-07-01T10:00:00Z" }, porto])).toEqual([
      `Most relevant: ${lisbon.text}`,
    ]);
    expect(
      lineOf([
        { ...lisbon, createdAt: "2026-01-01" },
        { ...porto, createdAt: 1_780_000_000 },
      ]),
    ).toEqual([`Most relevant: ${porto.text}`]);
  });

  it("is missing where the one that it would repeat is of an untrusted origin", () => {
    const web = { origin: "web" };
    expect(lineOf([{ ...lisbon, ...web }, tea])).toEqual([]);
    expect(lineOf([lisbon, { ...porto, ...web }])).toEqual([]);
    expect(lineOf([{ ...lisbon, ...web }, porto])).toEqual([`Most relevant: ${porto.text}`]);
    expect(lineOf([{ ...lisbon, origin: "user" }, tea])).toEqual([`Most relevant: ${lisbon.text}`]);
    const said = [{ ...lisbon, ...web }, memory("mine", lisbon.text), tea];
    expect(lineOf(said), "a trusted memory says the same").toEqual([`Most relevant: ${lisbon.text}`]);
  });
});
