import { expect, it } from "vitest";
import { blocksIn } from "../../../src/eval/base/prompt-memories.js";

const section = (...lines: string[]) => `<memories>\n${lines.join("\n")}\n</memories>`;

it.each([
  ["at the start of a question", "user", `${section("- Ada rows", "- Ada sails")}\n\nWho?`, ["Ada rows", "Ada sails"]],
  ["with an update", "user", `${section("- Ada rows")}\nUpdate: Ada sails\n\nWho?`, ["Ada rows", "Ada sails"]],
  ["not in the line after it", "user", `${section("- Ada rows")}\nMost relevant: Ada sails\n\nWho?`, ["Ada rows"]],
  ["behind instructions", "system", `Be kind.\n\n${section("- Ada rows")}`, ["Ada rows"]],
  ["not in the middle of other messages", "assistant", `Here: ${section("- Ada rows")}`, []],
])("reads the memories of a section %s", (_where, role, content, texts) => {
  expect(blocksIn({ role, content }).map(({ text }) => text)).toEqual(texts);
});

it("reads a section that an engine's marks split into parts", () => {
  const content = ["<memories>\n- Ada rows\n", "- Ada sails\n</memories>\n\nWho?"].map((text) => ({
    type: "text",
    text,
  }));
  expect(blocksIn({ role: "user", content }).map(({ text }) => text)).toEqual(["Ada rows", "Ada sails"]);
});
