import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutProviderMemories } from "../../../src/core/blocks/provider-memories.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { ownMessage, retrieved } from "./provider-texts.js";

const QUESTION: ChatMessage = { role: "user", content: "Tea?" };
const system = (content: ChatMessage["content"]): ChatMessage => ({ role: "system", content });
const textsIn = (messages: readonly ChatMessage[]) =>
  withoutProviderMemories(messages).memories?.map(({ text }) => text) ?? null;

describe("memories of Mem0's AI SDK provider in front of a prompt", () => {
  it("are taken out, whatever the words of the prompt and its roles are", () => {
    const brief = system("Be brief.");
    for (const [given, rest] of [
      [
        [system(ownMessage(["a", "b"])), brief, QUESTION],
        [brief, QUESTION],
      ],
      [[{ role: "developer", content: ownMessage(["a", "b"]) }, QUESTION], [QUESTION]],
      [[system(retrieved(["a", "b"])), QUESTION], [QUESTION]],
      [
        [brief, system(ownMessage(["a", "b"])), QUESTION],
        [brief, QUESTION],
      ],
      [
        [
          system([
            { type: "text", text: ownMessage(["a", "b"]) },
            { type: "text", text: "Be brief.", cache_control: {} },
          ]),
        ],
        [system([{ type: "text", text: "Be brief.", cache_control: {} }])],
      ],
      [[system([{ type: "text", text: ownMessage(["a", "b"]) }]), QUESTION], [QUESTION]],
    ] as const) {
      const { messages, memories } = withoutProviderMemories(given);
      expect(messages).toEqual(rest);
      expect(memories?.map(({ text }) => text)).toEqual(["a", "b"]);
    }
  });

  it("have ids by their texts, so that a memory is the same on every turn", () => {
    const idsIn = (texts: string[]) =>
      withoutProviderMemories([system(ownMessage(texts)), QUESTION]).memories?.map(({ id }) => id);
    const [a, b] = idsIn(["a", "b"]) ?? [];
    expect(a).toMatch(/^text:[\w-]{43}$/);
    expect(idsIn(["c", "b", "a"])).toEqual([expect.stringMatching(/^text:/), b, a]);
  });

  it("are whole, whatever they say, in the provider's own message", () => {
    const texts = fc.array(
      fc.oneof(
        fc.string({ minLength: 1 }),
        fc.stringMatching(/^[a\n :Memory]{1,12}$/),
        fc.constantFrom("a\n\nb", "\n\n", "a \n", "System Message: ", "Memory: Memory: ", "</memories>\n\nNew rules."),
      ),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(texts, (given) => {
        const { messages, memories } = withoutProviderMemories([system(ownMessage(given)), QUESTION]);
        const said = given.filter((text) => text.trim() !== "" && text.isWellFormed() && !text.includes("\0"));
        fc.pre(said.length === given.length);
        expect(messages).toEqual([QUESTION]);
        // A text that holds the form of another is split: every word of it is a memory's all the same.
        const words = (list: readonly string[]) => list.join("").replace(/Memory: |\s/g, "");
        expect(words(memories?.map(({ text }) => text) ?? [])).toBe(words(given));
        if (!given.some((text) => /\n$|\nMemory: |^\n/.test(text))) expect(memories).toHaveLength(given.length);
      }),
    );
  });

  const own = ownMessage(["a", "b"]);
  const result = retrieved(["a", "b"]);
  it.each<[string, readonly ChatMessage[]]>([
    ["an application's text behind it", [system(`${own}Be brief.`), QUESTION]],
    ["an application's text behind a result", [system(`${result}You plan trips.`), QUESTION]],
    ["only the sentences in front", [system(own.slice(0, own.indexOf("Memory: "))), QUESTION]],
    ["no memory", [system(`${own.slice(0, own.indexOf("Memory: "))}Memory: `), QUESTION]],
    ["what is no memory among them", [system(own.replace("Memory: a", "Fact: a")), QUESTION]],
    ["the user's word", [{ role: "user", content: own }]],
    ["a place behind the first question", [QUESTION, system(own), QUESTION]],
    [
      "a place in a part that is not the first",
      [
        system([
          { type: "text", text: "Be brief." },
          { type: "text", text: own },
        ]),
      ],
    ],
    ["a part of another type", [system([{ type: "note", text: own }]), QUESTION]],
    ["more memories than a request may have", [system(ownMessage(Array.from({ length: 1_001 }, () => "a"))), QUESTION]],
  ])("are none with %s: the messages stay as they are", (_what, messages) => {
    const taken = withoutProviderMemories(messages);
    expect(taken.memories).toBeNull();
    expect(taken.messages).toBe(messages);
  });

  it("are one where their introduction repeats in it", () => {
    expect(textsIn([system(retrieved(["Memory: ".repeat(2_000)])), QUESTION])).toHaveLength(1);
  });
});
