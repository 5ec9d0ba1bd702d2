import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messages as api } from "../../src/apis/messages/index.js";
import type { ChatMessage } from "../../src/core/index.js";
import { ENGINES } from "../../src/engines/adapters/engines.js";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const id = fc.constantFrom("toolu_1", "toolu_2", "toolu_3");
const mark = fc.constantFrom({}, { cache_control: { type: "ephemeral" } });
const textBlock = fc.tuple(text, mark).map(([said, marked]) => ({ type: "text", text: said, ...marked }));
const image = fc.constant({ type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } });
const resultBlock = fc
  .tuple(
    id,
    fc.option(fc.oneof(text, fc.array(fc.oneof(textBlock, image), { maxLength: 3 })), { nil: undefined }),
    mark,
  )
  .chain(([tool_use_id, content, marked]) =>
    fc.constantFrom(
      { type: "tool_result", tool_use_id, ...(content === undefined ? {} : { content }), ...marked },
      { tool_use_id, type: "tool_result", is_error: true, ...marked, ...(content === undefined ? {} : { content }) },
    ),
  );
const thinking = fc.tuple(text, text).map(([said, signature]) => ({ type: "thinking", thinking: said, signature }));
const redacted = text.map((data) => ({ type: "redacted_thinking", data }));
const call = fc
  .tuple(id, fc.dictionary(text, fc.jsonValue(), { maxKeys: 3 }))
  .map(([called, input]) => ({ type: "tool_use", id: called, name: "brew", input }));
const document = text.map((data) => ({ type: "document", source: { type: "text", media_type: "text/plain", data } }));
const userMessage = fc
  .oneof(text, fc.array(fc.oneof(resultBlock, textBlock, image, document), { maxLength: 4 }))
  .map((content) => ({ role: "user", content }));
const assistantMessage = fc
  .oneof(text, fc.array(fc.oneof(thinking, redacted, textBlock, call), { maxLength: 4 }))
  .map((content) => ({ role: "assistant", content }));
const anyBody = fc
  .record({
    model: fc.constant("claude-opus-4-8"),
    messages: fc.array(
      fc.oneof(
        userMessage,
        assistantMessage,
        text.map((content) => ({ role: "system", content })),
      ),
      {
        maxLength: 6,
      },
    ),
    system: fc.option(fc.oneof(text, fc.array(textBlock, { maxLength: 3 })), { nil: undefined }),
    max_tokens: fc.constant(50),
  })
  .map(({ system, ...body }) => (system === undefined ? body : { ...body, system }));

function chatOf(body: Readonly<Record<string, unknown>>): readonly ChatMessage[] {
  return api.history(body) ?? expect.fail("no messages");
}

describe("Anthropic's messages as chat messages", () => {
  it("are the same again without memories, byte for byte", () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        expect(JSON.stringify(api.withPrompt(body, chatOf(body)))).toBe(JSON.stringify(body));
      }),
    );
  });

  it("are the same again from what is stored of them", () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        const stored = JSON.parse(JSON.stringify(chatOf(body))) as ChatMessage[];
        expect(JSON.stringify(api.withPrompt(body, stored))).toBe(JSON.stringify(body));
      }),
    );
  });

  it("are the same again but for breakpoints, of which there are never more than four", () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        const chat = chatOf(body);
        const reusableMessages = chat.map((_message, at) => at);
        const prompt = { requestId: "r" as never, tenantKey: "t", scopeKey: "s", messages: chat, reusableMessages };
        const { messages } = ENGINES.anthropic.emit(prompt);
        const sent = api.withPrompt(body, messages);
        const marks = (value: unknown) => JSON.stringify(value).match(/"cache_control"/g)?.length ?? 0;
        expect(marks(sent)).toBeLessThanOrEqual(Math.max(4, marks(body)));
        expect(bare(sent)).toEqual(bare(body));
      }),
    );
  });

  it.each([
    ["no list", { messages: "Which?" }],
    ["no message", { messages: [7] }],
    [
      "another role's field in a result",
      { messages: [{ role: "user", content: [{ type: "tool_result", role: "x" }] }] },
    ],
  ])("are none where there are none: %s", (_what, body) => {
    expect(api.history(body)).toBeNull();
  });

  it("end with the user's message where a system message stands behind it", () => {
    const system = { role: "system", content: "Be brief." };
    const body = { messages: [{ role: "user", content: "Which?" }, system, system] };
    expect(chatOf(body)).toEqual([{ role: "user", content: "Which?", anthropic_following: [system, system] }]);
  });

  it("have memories behind a tool's result before the system message behind it", () => {
    const system = { role: "system", content: "Be brief." };
    const body = { messages: [{ role: "user", content: [result] }, system] };
    const composed = [...chatOf(body), { role: "user", content: section }];
    expect(api.withPrompt(body, composed)["messages"]).toEqual([
      { role: "user", content: [result, { type: "text", text: section }] },
      system,
    ]);
  });

  const result = { type: "tool_result", tool_use_id: "toolu_1", content: "12 C" };
  const section = "<memories>\n- Ada drinks green tea\n</memories>";

  it("have memories behind a tool's result in its own message, as a text block", () => {
    const body = { messages: [{ role: "user", content: [result] }] };
    const composed = [...chatOf(body), { role: "user", content: section }];
    expect(api.withPrompt(body, composed)["messages"]).toEqual([
      { role: "user", content: [result, { type: "text", text: section }] },
    ]);
  });

  it("have memories between a tool's result and what the user says with it", () => {
    const body = { messages: [{ role: "user", content: [result, { type: "text", text: "And?" }] }] };
    const [first, last] = chatOf(body) as [ChatMessage, ChatMessage];
    const content = [{ type: "text", text: section }, ...(last.content as [])];
    expect(api.withPrompt(body, [first, { ...last, content }])["messages"]).toEqual([
      { role: "user", content: [result, { type: "text", text: section }, { type: "text", text: "And?" }] },
    ]);
  });

  it("stay two where the client sent two, memories behind the first", () => {
    const messages = [
      { role: "user", content: [result] },
      { role: "user", content: "And?" },
    ];
    const [first, last] = chatOf({ messages }) as [ChatMessage, ChatMessage];
    const composed = [first, { role: "user", content: section }, last];
    expect(api.withPrompt({ messages }, composed)["messages"]).toEqual([
      { role: "user", content: [result, { type: "text", text: section }] },
      messages[1],
    ]);
  });
});

/** A body without breakpoints, its texts as parts. */
function bare(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (name, field: unknown) => {
      if (name === "cache_control") return undefined;
      if ((name === "content" || name === "system") && typeof field === "string")
        return field === "" ? [] : [{ type: "text", text: field }];
      return field;
    }),
  );
}
