import { describe, expect, it } from "vitest";
import { type ChatMessage, countedText, messageDigest, messageText } from "../../../src/core/text/message.js";
import { toolExchange, user } from "../compose/scope-fixture.js";

describe("a message's digest", () => {
  it.each<[string, ChatMessage, ChatMessage]>([
    [
      "the order of fields",
      { role: "user", content: "Hi", name: "ada", meta: { a: 1, b: [2] } },
      { meta: { b: [2], a: 1 }, name: "ada", content: "Hi", role: "user" },
    ],
    ["the order of a plain message's fields", user("Hi"), { content: "Hi", role: "user" }],
    ["fields that are not set", user("Hi"), { role: "user", content: "Hi", name: undefined }],
    ["an absent content and null", { role: "assistant" }, { role: "assistant", content: null }],
  ])("does not tell apart %s", (_what, a, b) => {
    expect(messageDigest(a)).toBe(messageDigest(b));
  });

  it.each<[string, ChatMessage, ChatMessage]>([
    ["roles", user("Hi"), { role: "assistant", content: "Hi" }],
    ["contents", user("Hi"), user("Hi ")],
    ["an empty content and none", user(""), { role: "user", content: null }],
    ["a text and a part", user("Hi"), { role: "user", content: [{ type: "text", text: "Hi" }] }],
    ["other fields", user("Hi"), { ...user("Hi"), name: "ada" }],
  ])("tells apart %s", (_what, a, b) => {
    expect(messageDigest(a)).not.toBe(messageDigest(b));
  });
});

describe("a message's text", () => {
  it("is its content, or its text parts", () => {
    expect(messageText(user("Hi"))).toBe("Hi");
    expect(messageText({ role: "user", content: null })).toBe("");
    expect(messageText({ role: "user" })).toBe("");
    const content = [
      { type: "text", text: "One" },
      { type: "image_url", image_url: {} },
      { type: "text", text: "Two" },
    ];
    expect(messageText({ role: "user", content })).toBe("One\nTwo");
  });

  it("counts with everything else that the engine sees of the message", () => {
    expect(countedText(user("Hi"))).toBe("Hi");
    expect(countedText(toolExchange("42")[0] ?? user(""))).toContain("look_up");
    const call = { type: "tool_use", id: "toolu_1", name: "look_up", input: { city: "Turin" } };
    const content = [{ type: "text", text: "One" }, call];
    expect(countedText({ role: "assistant", content })).toBe('One\n{"input":{"city":"Turin"},"name":"look_up"}');
  });

  it("counts with the calls and results of the AI SDK's prompts, without its providers' options", () => {
    const providerOptions = { openai: { reasoningEncryptedContent: "x".repeat(1_000) } };
    const call = { type: "tool-call", toolCallId: "c", toolName: "look_up", input: { city: "Turin" }, providerOptions };
    const counted = (message: object) => countedText({ role: "assistant", ...message });
    expect(counted({ content: [call], providerOptions })).toBe('\n{"input":{"city":"Turin"},"name":"look_up"}');
    const result = (output: object) => ({ content: [{ type: "tool-result", toolCallId: "c", toolName: "t", output }] });
    expect(counted(result({ type: "text", value: "12 degrees." }))).toBe("\n12 degrees.");
    expect(counted(result({ type: "json", value: { b: 1, a: [2] } }))).toBe('\n{"a":[2],"b":1}');
    const file = { type: "file-data", data: "A".repeat(1_000), mediaType: "image/png" };
    expect(counted(result({ type: "content", value: [{ type: "text", text: "One" }, file] }))).toBe("\nOne");
    expect(counted({ content: [{ type: "tool-result" }] })).toBe("\nnull");
  });
});
