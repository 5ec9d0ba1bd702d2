import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  appendTo,
  injectInto,
  sectionAtStart,
  sectionMessage,
  stripSection,
} from "../../../src/core/prompt/section.js";
import type { ChatMessage } from "../../../src/core/text/message.js";
import { user } from "../compose/scope-fixture.js";
import { hostileText } from "../escaping/hostile-text.js";

const SECTION = "<memories>\n[Doc_1] Likes tea.\n</memories>";
const LINED = "<memories>\n- Likes tea.\n</memories>\nMost relevant: Likes tea.\n  Green tea.";
const ours = (section: string) => section === SECTION || section === LINED;

const image = { type: "image_url", image_url: { url: "data:," } };

describe("a section in a message", () => {
  it("stands before a text, with an empty line between", () => {
    expect(injectInto(user("What tea?"), SECTION)).toEqual({ role: "user", content: `${SECTION}\n\nWhat tea?` });
  });

  it("is a text part of its own before other parts, which stay as they are", () => {
    const content = [{ type: "text", text: "What is this?" }, image];
    expect(injectInto({ role: "user", content, name: "ada" }, SECTION)).toEqual({
      role: "user",
      name: "ada",
      content: [{ type: "text", text: SECTION }, ...content],
    });
  });

  it("leaves the message untouched where there is nothing to inject, and never changes the one it was given", () => {
    const message = Object.freeze(user("Hello"));
    expect(injectInto(message, "")).toBe(message);
    injectInto(message, SECTION);
    expect(message.content).toBe("Hello");
  });

  it.each([SECTION, LINED])("comes off again, leaving the message that it was put into: %j", (section) => {
    const parts = [{ type: "text", text: "a" }, image];
    const anyMessage: fc.Arbitrary<ChatMessage> = fc
      .oneof(hostileText, fc.constant(parts), fc.constant([image]), fc.constant(""))
      .map((content) => ({ role: "user", content }));
    fc.assert(
      fc.property(anyMessage, (message) => {
        expect(stripSection(injectInto(message, section), ours)).toEqual(message);
      }),
    );
  });

  it("comes off the end of a tool's result, which keeps its own blank lines", () => {
    for (const content of ["\n\n42\n", "", [{ type: "text", text: "\n\n42" }]]) {
      const result: ChatMessage = { role: "tool", tool_call_id: "c", content };
      expect(stripSection(appendTo(result, SECTION), ours)).toEqual(result);
    }
  });

  it.each(["after-tool-result", "after-tool-result-as-parts"] as const)(
    "leaves nothing of a section %s",
    (placement) => {
      expect(stripSection(sectionMessage(SECTION, placement), ours)).toBeNull();
    },
  );
});

describe("the section at the start of a text", () => {
  it("ends at its own closing tag, whatever follows but an annotation", () => {
    fc.assert(
      fc.property(hostileText, (after) => {
        fc.pre(!/^\n(?:Update: |Most relevant: |[^\n]*\[Doc_\d+\])/.test(after));
        expect(sectionAtStart(SECTION + after)).toBe(SECTION);
      }),
    );
  });

  it.each([
    "no section",
    ` ${SECTION}`,
    "<memories>\n[Doc_1] never closed",
    "<memories>\nanything [Doc_1]\n[Doc_1] late\n</memories>",
    "<memories></memories>",
  ])("is not found in %j", (text) => {
    expect(sectionAtStart(text)).toBeNull();
  });
});
