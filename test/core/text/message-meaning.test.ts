import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ChatMessage, canonicalMessage, meaningDigest, messageDigest } from "../../../src/core/text/message.js";
import { anyMeaning, anySpelling, said } from "../escaping/spellings.js";

const meaningOf = (message: ChatMessage) => meaningDigest(message, messageDigest(message));

describe("what a message means", () => {
  it("is the same however a client writes it", () => {
    const property = fc.property(anyMeaning, anySpelling, anySpelling, (meaning, one, other) => {
      expect(meaningOf(said(meaning, one))).toBe(meaningOf(said(meaning, other)));
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("differs wherever something else is said", () => {
    const property = fc.property(anyMeaning, anyMeaning, anySpelling, anySpelling, (a, b, one, other) => {
      const isSame = JSON.stringify(a) === JSON.stringify(b);
      expect(meaningOf(said(a, one)) === meaningOf(said(b, other))).toBe(isSame);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("has one form, which is a message that means the same", () => {
    const property = fc.property(anyMeaning, anySpelling, (meaning, spelling) => {
      const canonical = canonicalMessage(said(meaning, spelling));
      expect(canonicalMessage(canonical)).toBe(canonical);
      expect(messageDigest(canonical)).toBe(meaningOf(said(meaning, spelling)));
    });
    fc.assert(property, { numRuns: 1_000 });
  });

  const of = (role: string, content: unknown, more: object = {}) => ({ role, content, ...more }) as ChatMessage;
  const parts = (...texts: readonly string[]) => texts.map((text) => ({ type: "text", text }));
  const call = (json: unknown, more: object = {}) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: json }, ...more }],
  });
  const different: Record<string, [ChatMessage, ChatMessage]> = {
    "numbers that a program would round to one": [call('{"a":9007199254740993}'), call('{"a":9007199254740992}')],
    "a string like the sign of a number": [call('{"a":"n1"}'), call('{"a":1}')],
    "two text parts and one": [of("user", parts("a", "b")), of("user", "ab")],
    "white space inside a text": [of("user", "a\n\nb"), of("user", "a\nb")],
    "a refusal and a text": [of("assistant", null, { refusal: "No." }), of("assistant", "No.")],
    "an answer to be continued": [of("assistant", "Hi", { prefix: true }), of("assistant", "Hi")],
  };

  it.each(Object.entries(different))("tells apart %s", (_what, [a, b]) => {
    expect(meaningOf(a)).not.toBe(meaningOf(b));
  });

  const same: Record<string, [ChatMessage, ChatMessage]> = {
    "an answer of OpenAI's and what its SDK's users send back": [
      of("assistant", "Hi", { refusal: null, annotations: [], audio: null, tool_calls: null }),
      of("assistant", "Hi"),
    ],
    "an answer that was thought about": [
      of("assistant", "Hi", { reasoning_content: "The user greets me.", reasoning: "So do I." }),
      of("assistant", "Hi"),
    ],
    "an answer of the AI SDK's, and the same without its provider's options and reasoning": [
      of("assistant", [
        { type: "reasoning", text: "She wants tea.", providerOptions: { openai: { itemId: "rs_1" } } },
        { type: "text", text: "Hi", providerOptions: { openai: { itemId: "msg_1" } } },
      ]),
      of("assistant", parts("Hi")),
    ],
    "arguments that Python wrote": [
      call('{"b": [1, 2.50], "a": "caf\\u00e9\\/"}', { index: 0 }),
      call('{"a":"café/","b":[1,2.5]}'),
    ],
    "arguments as a value": [call({ a: 1 }), call('{ "a": 1 }')],
    "no arguments": [call(""), call("{}")],
  };

  it.each(Object.entries(same))("does not tell apart %s", (_what, [a, b]) => {
    expect(meaningOf(a)).toBe(meaningOf(b));
  });

  it("survives arguments nested ten thousand deep", () => {
    const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    expect(meaningOf(call(deep))).not.toBe(meaningOf(call("[]")));
  });

  it("reads arguments of 4 MiB in one pass, whatever they are", () => {
    const quotes = '\\"'.repeat(2 * 1024 * 1024);
    const long = ["9", "-"].map((digit) => digit.repeat(4 * 1024 * 1024));
    for (const json of [quotes, `"${quotes}"`, `"${quotes}`, ...long]) expect(meaningOf(call(json))).toMatch(/./);
  });
});
