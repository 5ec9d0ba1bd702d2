import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatMessage, injectInto, stripSection } from "../../../src/core/index.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { promptOf, section } from "./prompts.js";

const ours = () => true;

/** Every text and its parts; images say nothing to the splitting. */
const question: fc.Arbitrary<ChatMessage> = fc.oneof(
  fc.string({ minLength: 1 }).map((content) => ({ role: "user", content })),
  fc
    .array(fc.string(), { minLength: 1, maxLength: 3 })
    .map((texts) => ({ role: "user", content: texts.map((text) => ({ type: "text", text })) })),
);

describe.each(["anthropic", "openai-breakpoints"] as const)("a message as it went to %s", (name) => {
  it("loses its memories where a client sends it back, and is the plain question again", () => {
    fc.assert(
      fc.property(question, fc.integer({ min: 1, max: 3 }), fc.boolean(), (plain, blocks, annotated) => {
        const composed = injectInto(plain, section(blocks, annotated));
        // Split, but not marked at its end: an end that carries a mark is another message.
        const prompt = promptOf([composed], { reusableMessages: [], reusableMemories: 0 });
        const [sent] = ENGINES[name].emit(prompt).messages;
        expect(stripSection(sent ?? composed, ours)).toEqual(plain);
      }),
    );
  });

  it("is the plain text again also where it was marked at its end, with memories in it or only a line", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 0, max: 3 }), (content, blocks) => {
        const plain: ChatMessage = { role: "user", content };
        const prompt = promptOf([injectInto(plain, section(blocks, true))], { reusableMessages: [0] });
        const [sent] = ENGINES[name].emit(prompt).messages;
        expect(JSON.stringify(sent)).toMatch(/cache_control|prompt_cache_breakpoint/);
        expect(stripSection(sent ?? plain, ours)).toEqual(plain);
      }),
    );
  });

  it("is nothing any more where it was nothing but memories", () => {
    const prompt = promptOf([{ role: "user", content: section(2, true) }], { reusableMemories: 0 });
    const [sent] = ENGINES[name].emit(prompt).messages;
    expect(sent?.content).toHaveLength(2);
    expect(stripSection(sent ?? { role: "user" }, ours)).toBeNull();
  });
});
