import { describe, expect, it } from "vitest";
import type { ClientWindow } from "../../../src/eval/base/run-record.js";
import { historySent } from "../../../src/eval/run/arms.js";

const history = ["a", "b", "c", "d"].map((content) => ({ role: "user", content }));
const sent = (layout: "single" | "conversation", messages: number | null, name: ClientWindow["history"] = null) =>
  historySent(history, { layout, window: messages === null ? null : { messages, history: name, ratio: null } })
    .map(({ content }) => content)
    .join("");

describe("historySent", () => {
  it("is what a window has room for beside the question", () => {
    expect([1, 2, 3, 5, 6].map((messages) => sent("conversation", messages, "exact"))).toEqual([
      "",
      "d",
      "cd",
      "abcd",
      "abcd",
    ]);
    expect(sent("conversation", 3)).toBe("cd");
  });

  it("is the last answer alone where memprefix has the rest, and all where there is no window", () => {
    expect([1, 3, 8].map((messages) => sent("conversation", messages, "stored"))).toEqual(["d", "d", "d"]);
    expect(sent("conversation", null)).toBe("abcd");
  });

  it("is nothing in single prompts", () => {
    expect(sent("single", null)).toBe("");
  });
});
