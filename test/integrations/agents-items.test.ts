import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { instructionsIn, itemsOf, messagesOf } from "../../src/integrations/agents-items.js";

const text = fc.string({ maxLength: 8 });
const providerData = fc.record({ annotations: fc.constant([]), phase: text }, { requiredKeys: [] });
const part = fc.oneof(
  fc.record(
    { type: fc.constantFrom("input_text", "output_text", "text"), text, providerData },
    { requiredKeys: ["type", "text"] },
  ),
  fc.record({ type: fc.constant("input_image"), image: fc.oneof(text, fc.record({ id: text })), detail: text }),
  fc.record({ type: fc.constant("refusal"), refusal: text }),
);
const content = fc.oneof(text, fc.array(part, { maxLength: 3 }));
const item = fc.oneof(
  fc.record(
    {
      type: fc.constant("message"),
      id: text,
      status: fc.constant("completed"),
      role: fc.constantFrom("user", "assistant", "system", "someone"),
      content,
      providerData,
      responses_item: fc.jsonValue(),
      agents_item: fc.jsonValue(),
    },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record(
    { type: fc.constant("function_call"), id: text, callId: text, name: text, arguments: text, providerData },
    { requiredKeys: ["type", "callId", "name", "arguments"] },
  ),
  fc.record(
    { type: fc.constant("function_call_result"), name: text, callId: text, output: fc.oneof(content, part), id: text },
    { requiredKeys: ["type", "name", "callId", "output"] },
  ),
  fc.record({ type: fc.constant("reasoning"), id: text, content: fc.array(part, { maxLength: 2 }), providerData }),
  fc.record({ type: fc.constantFrom("hosted_tool_call", "computer_call_result", "compaction"), callId: text }),
  fc.jsonValue(),
);
const items = fc.array(item, { maxLength: 8 });

/** What a service is sent. */
const sent = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe("the items of a run", () => {
  it("are the same after they were messages, whatever they are, and so are the instructions", () => {
    fc.assert(
      fc.property(items, fc.option(text, { nil: undefined }), (input, instructions) => {
        const messages = sent(messagesOf(input, instructions));
        expect(itemsOf(messages)).toEqual(input);
        expect(instructionsIn(messages) ?? "").toBe(instructions ?? "");
      }),
    );
  });

  it("are chats' forms of calls, results and texts; reasoning belongs to what the assistant does next", () => {
    const reasoning = { type: "reasoning", id: "rs_1", content: [] };
    const image = { type: "input_image", image: "data:" };
    const messages = messagesOf(
      [
        { role: "user", content: [{ type: "input_text", text: "Tea?" }] },
        { role: "user", content: [{ type: "input_text", text: "This?" }, image] },
        reasoning,
        { type: "function_call", callId: "c", name: "shop", arguments: "{}", status: "completed" },
        { type: "function_call_result", callId: "c", name: "shop", output: { type: "text", text: "yes" } },
        { type: "compaction", encrypted_content: "x" },
      ],
      "Be brief.",
    );
    expect(messages.map(({ responses_item: _form, ...message }) => message)).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Tea?" },
      {
        role: "user",
        content: [
          { type: "text", text: "This?" },
          { type: "agents_part", part: image },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "shop", arguments: "{}" } }],
      },
      { role: "tool", content: "yes", tool_call_id: "c" },
      { role: "assistant", content: null, agents_item: { type: "compaction", encrypted_content: "x" } },
    ]);
  });
});
