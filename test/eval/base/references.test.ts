import { describe, expect, it } from "vitest";
import { countReferences } from "../../../src/eval/base/prompt-memories.js";

const section = (...lines: string[]) => `<memories>\n${lines.join("\n")}\n</memories>`;
const user = (content: string) => ({ role: "user", content });

describe("countReferences", () => {
  it("finds labels wherever a memory stands in the prompt, and counts those that stand nowhere", () => {
    const earlier = user(`${section("[Doc_1] Ada drinks tea", "[Doc_2] Ada keeps bees")}\n\nWho?`);
    const now = user(`${section("[Doc_7] Ada rows")}\nMost relevant first: [Doc_7][Doc_2].\n\nAnd?`);
    const annotations = ["Most relevant first: [Doc_7][Doc_2].", "Also relevant, given earlier: [Doc_3]."];
    expect(countReferences(annotations, [earlier, now])).toEqual({ references: 3, referencesResolved: 2 });
    expect(countReferences(annotations, [now])).toEqual({ references: 3, referencesResolved: 1 });
    expect(countReferences([], [now])).toEqual({ references: 0, referencesResolved: 0 });
  });

  it("finds the texts that lines quote, and counts those that stand nowhere", () => {
    const long = `Ada keeps ${"many ".repeat(100)}bees`;
    const earlier = user(`${section("- Ada drinks tea", `- ${long}`, "- Ada owes [\\2]\n  since May")}\n\nWho?`);
    const now = user(`${section("- Ada rows")}\n\nAnd?`);
    const annotations = [
      "Most relevant: Ada rows",
      "Most relevant: Ada drinks tea",
      `Most relevant: ${long.slice(0, 400).trimEnd()}…`,
      "Most relevant: Ada owes [\\2]\n  since May",
    ];
    expect(countReferences(annotations, [earlier, now])).toEqual({ references: 4, referencesResolved: 4 });
    expect(countReferences(annotations, [now])).toEqual({ references: 4, referencesResolved: 1 });
    const others = ["Most relevant: Ada drinks", "Most relevant: Ada…", "Most relevant first: nothing"];
    expect(countReferences(others, [earlier, now])).toEqual({ references: 2, referencesResolved: 0 });
  });

  it("takes an update for a memory that stands, not for a reference", () => {
    const lines = ["Update: Ada drinks mate", "Update: [Doc_3] Ada rows"];
    const now = user(`${section("- Ada keeps bees")}\n${lines.join("\n")}\n\nWho?`);
    const annotations = [...lines, "Most relevant: Ada drinks mate", "See [Doc_3]."];
    expect(countReferences(annotations, [now])).toEqual({ references: 2, referencesResolved: 2 });
  });

  it("takes no label for a memory that only an annotation, a question or a forged section names", () => {
    const named = user(
      `${section("[Doc_1] Ada drinks tea", "Most relevant first: [Doc_2].")}\n\nWhat is [Doc_2]? [Doc_2] Ada keeps bees`,
    );
    const forged = { role: "assistant", content: `Here: ${section("[Doc_2] Ada keeps bees")}` };
    expect(countReferences(["See [Doc_2]."], [named, forged])).toEqual({ references: 1, referencesResolved: 0 });
  });

  it("finds a section behind the instructions", () => {
    const system = { role: "system", content: `Be kind.\n\n${section("[Doc_1] Ada drinks tea")}` };
    const question = user(`Who? ${section("[Doc_2] Ada keeps bees")}`);
    expect(countReferences(["See [Doc_1][Doc_2]."], [system, question])).toEqual({
      references: 2,
      referencesResolved: 1,
    });
  });

  it("reads a section that an engine's marks split into parts", () => {
    const parts = [
      { type: "text", text: "<memories>\n[Doc_1] Ada drinks tea\n" },
      { type: "text", text: "[Doc_2] Ada keeps bees\n</memories>\n\nWho?" },
    ];
    expect(countReferences(["See [Doc_1][Doc_2]."], [{ role: "user", content: parts }])).toEqual({
      references: 2,
      referencesResolved: 2,
    });
  });
});
