import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { responses as api } from "../../src/apis/responses/index.js";
import { type ChatMessage, meaningDigest, messageDigest } from "../../src/core/index.js";
import { injectInto } from "../../src/core/prompt/section.js";

const messagesOf = (input: unknown, instructions: unknown = null) => api.history({ input, instructions });
const inputOf = (messages: readonly ChatMessage[], own: unknown = []) =>
  api.withPrompt({ input: own }, messages)["input"];

const text = fc.string({ maxLength: 8 });
const textPart = fc.record(
  {
    type: fc.constantFrom("input_text", "output_text", "text"),
    text,
    annotations: fc.constant([]),
    before: text,
  },
  { requiredKeys: ["type", "text"] },
);
const part = fc.oneof(
  textPart,
  fc.record({ type: fc.constant("input_image"), image_url: text, detail: fc.constant("auto") }),
  fc.record({ type: fc.constant("refusal"), refusal: text }),
);
const content = fc.oneof(text, fc.array(part, { maxLength: 3 }));
const item = fc.oneof(
  fc.record(
    {
      type: fc.constant("message"),
      id: text,
      status: fc.constant("completed"),
      role: fc.constantFrom("user", "assistant", "system", "developer", "someone"),
      content,
      before: fc.jsonValue(),
      fields: fc.jsonValue(),
    },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record(
    { type: fc.constant("function_call"), id: text, call_id: text, name: text, arguments: text, status: text },
    { requiredKeys: ["type", "call_id", "name", "arguments"] },
  ),
  fc.record(
    {
      type: fc.constantFrom("function_call_output", "custom_tool_call_output"),
      call_id: text,
      output: content,
      id: text,
    },
    { requiredKeys: ["type", "call_id", "output"] },
  ),
  fc.record({ type: fc.constant("reasoning"), id: text, summary: fc.constant([]), encrypted_content: text }),
  fc.record({ type: fc.constantFrom("item_reference", "computer_call_output", "web_search_call"), id: text }),
  fc.record({ type: fc.constant("unheard_of"), role: text, content: fc.jsonValue() }),
  fc.jsonValue(),
);

describe("the items of a Responses request", () => {
  it("are the same after they were messages, whatever they are", () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.array(item, { maxLength: 8 })), fc.option(text), (input, instructions) => {
        const messages = messagesOf(input, instructions);
        expect(inputOf(messages ?? [], input)).toEqual(input);
        const stored = JSON.parse(JSON.stringify(messages)) as ChatMessage[];
        expect(inputOf(stored, input)).toEqual(JSON.parse(JSON.stringify(input)));
      }),
      { numRuns: 2_000 },
    );
  });

  it("take a section as a part of their own type, or into their text", () => {
    const section = "<memories>\n- Tea.\n</memories>";
    const withSection = (input: unknown) =>
      inputOf(
        (messagesOf(input) ?? []).map((message) => (message.role === "user" ? injectInto(message, section) : message)),
        input,
      );
    expect(withSection("Which?")).toBe(`${section}\n\nWhich?`);
    expect(withSection([{ role: "user", content: "Which?" }])).toEqual([
      { role: "user", content: `${section}\n\nWhich?` },
    ]);
    const image = { type: "input_image", image_url: "data:,", detail: "low" };
    const parts = [{ type: "input_text", text: "Which?" }, image];
    expect(withSection([{ type: "message", role: "user", content: parts }])).toEqual([
      { type: "message", role: "user", content: [{ type: "input_text", text: section }, ...parts] },
    ]);
  });

  it("are chats' messages: calls, results, and reasoning in front of what it led to", () => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [] };
    const call = {
      type: "function_call",
      id: "fc_1",
      call_id: "c",
      name: "brew",
      arguments: "{}",
      status: "completed",
    };
    const output = { type: "function_call_output", call_id: "c", output: "green" };
    const items = [{ role: "user", content: "Tea?" }, reasoning, call, output];
    const messages = messagesOf(items, "Be brief.");
    expect(messages).toMatchObject([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Tea?" },
      { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "brew", arguments: "{}" } }] },
      { role: "tool", tool_call_id: "c", content: "green" },
    ]);
    expect(messages).toHaveLength(4);
    expect(inputOf(messages?.slice(1) ?? [])).toEqual(items);
  });

  it("mean the same with and without ids, status and reasoning, and as a chat's own messages", () => {
    const meaning = (message: ChatMessage | undefined) => message && meaningDigest(message, messageDigest(message));
    const said = { type: "output_text", text: "Green.", annotations: [], logprobs: [] };
    const answer = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [said] };
    const [given] = messagesOf([{ type: "reasoning", id: "rs_1", summary: [] }, answer]) ?? [];
    expect(meaning(given)).toBe(meaning({ role: "assistant", content: "Green." }));
    const [first] = messagesOf([{ type: "item_reference", id: "msg_1" }]) ?? [];
    const [second] = messagesOf([{ type: "item_reference", id: "msg_2" }]) ?? [];
    expect(meaning(first)).not.toBe(meaning(second));
  });

  it("are new ones for messages that were none", () => {
    const calls = [{ id: "c", type: "function", function: { name: "brew", arguments: "{}" } }];
    expect(
      inputOf([
        { role: "user", content: [{ type: "text", text: "Tea?" }] },
        { role: "assistant", content: "Soon.", tool_calls: calls },
        { role: "tool", tool_call_id: "c", content: "green" },
      ]),
    ).toEqual([
      { role: "user", content: [{ type: "input_text", text: "Tea?" }] },
      { role: "assistant", content: "Soon." },
      { type: "function_call", call_id: "c", name: "brew", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "green" },
    ]);
  });
});
