import { describe, expect, it } from "vitest";
import { toChatCompletion } from "../../../src/engines/anthropic/messages-request.js";

const PLAIN = { keepsMarks: false, isOpenAi: false };
const MARK = { cache_control: { type: "ephemeral" } };

describe("a request of Anthropic's as a chat completion", () => {
  it("has instructions, thinking, calls, results, images and documents where chats have them", () => {
    const body = {
      model: "m",
      max_tokens: 9,
      top_k: 4,
      thinking: { type: "adaptive" },
      system: [
        { type: "text", text: "Be brief.", ...MARK },
        { type: "text", text: "Be kind." },
      ],
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } },
            { type: "image", source: { type: "url", url: "https://example.org/a.png" } },
            { type: "document", source: { type: "text", media_type: "text/plain", data: "A page." } },
            { type: "document", title: "b.pdf", source: { type: "base64", media_type: "application/pdf", data: "BB" } },
            { type: "text", text: "And?", ...MARK },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "s" },
            { type: "redacted_thinking", data: "x" },
            { type: "text", text: "Let me " },
            { type: "text", text: "look." },
            { type: "tool_use", id: "t1", name: "look", input: { z: 1, a: 2 } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "Seen." }], is_error: false },
            { type: "text", text: "So?" },
          ],
        },
      ],
      tools: [
        { name: "look", input_schema: {}, ...MARK },
        { type: "web_search_20260318", name: "web_search" },
      ],
    };
    expect(toChatCompletion(body, PLAIN)).toEqual({
      model: "m",
      max_tokens: 9,
      top_k: 4,
      messages: [
        { role: "system", content: "Be brief.\nBe kind." },
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
            { type: "image_url", image_url: { url: "https://example.org/a.png" } },
            { type: "text", text: "A page." },
            { type: "file", file: { filename: "b.pdf", file_data: "data:application/pdf;base64,BB" } },
            { type: "text", text: "And?" },
          ],
        },
        {
          role: "assistant",
          content: "Let me look.",
          reasoning_content: "Hm.",
          tool_calls: [{ id: "t1", type: "function", function: { name: "look", arguments: '{"z":1,"a":2}' } }],
        },
        { role: "tool", tool_call_id: "t1", content: "Seen." },
        { role: "user", content: [{ type: "text", text: "So?" }] },
      ],
      tools: [{ type: "function", function: { name: "look", parameters: {} } }],
    });
  });

  it("keeps breakpoints for gateways to Anthropic's models", () => {
    const content = [{ type: "text", text: "And?", ...MARK }];
    const body = { messages: [{ role: "user", content }], system: content };
    expect(toChatCompletion(body, { ...PLAIN, keepsMarks: true })).toEqual({
      messages: [
        { role: "system", content },
        { role: "user", content },
      ],
    });
  });

  it("has the text and images of a document that is made of them, and in JSON what chats have no form for", () => {
    const document = (content: unknown, more: object = {}) => ({
      type: "document",
      title: "a",
      source: { type: "content", content },
      ...more,
    });
    const inFiles = { type: "image", source: { type: "file", file_id: "f1" } };
    const nothing = document([]);
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } };
    const pages = [{ type: "text", text: "One." }, image, { type: "text", text: "Two." }];
    const content = [document("A page."), document(pages, MARK), inFiles, nothing];
    const shown = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
    const parts = (last: object) => [
      { type: "text", text: "A page." },
      { type: "text", text: "One." },
      shown,
      { type: "text", text: "Two.", ...last },
      { type: "text", text: JSON.stringify(inFiles) },
      { type: "text", text: JSON.stringify(nothing) },
    ];
    const body = { messages: [{ role: "user", content }] };
    expect(toChatCompletion(body, PLAIN)).toEqual({ messages: [{ role: "user", content: parts({}) }] });
    expect(toChatCompletion(body, { ...PLAIN, keepsMarks: true })).toEqual({
      messages: [{ role: "user", content: parts(MARK) }],
    });
    const result = { type: "tool_result", tool_use_id: "t1", content: [document([pages[0], pages[2]])] };
    expect(toChatCompletion({ messages: [{ role: "user", content: [result] }] }, PLAIN)).toEqual({
      messages: [{ role: "tool", tool_call_id: "t1", content: "One.\nTwo." }],
    });
  });

  it("names the answer's tokens as OpenAI does", () => {
    const body = { max_tokens: 9, top_k: 4, messages: [] };
    expect(toChatCompletion(body, { ...PLAIN, isOpenAi: true })).toEqual({ max_completion_tokens: 9, messages: [] });
  });

  it("is none without messages", () => {
    expect(toChatCompletion({ model: "m" }, PLAIN)).toBeNull();
  });

  it.each([7, true, {}, [null], ["text"], [{ type: 1 }]])("is none where %j is to be content", (content) => {
    const user = { role: "user", content: "Tea?" };
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content }] };
    const bodies = [
      { system: content, messages: [user] },
      { messages: [{ role: "user", content }] },
      { messages: [{ role: "assistant", content }, user] },
      { messages: [user, result] },
    ];
    for (const body of bodies) expect(toChatCompletion(body, PLAIN)).toBeNull();
  });
});
