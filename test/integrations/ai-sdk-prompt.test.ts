import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messagesOf, promptOf } from "../../src/integrations/ai-sdk-prompt.js";

describe("a prompt of the AI SDK as messages of compose", () => {
  const roundTrip = (prompt: unknown) =>
    promptOf(JSON.parse(JSON.stringify(messagesOf(prompt as never))) as ReturnType<typeof messagesOf>);

  it("comes back byte for byte: files of every version's form, unknown parts and fields, empty ones", () => {
    const bytes = Uint8Array.from({ length: 20_000 }, (_, at) => (at * 7919) % 256);
    const url = new URL("https://example.com/a%20b?c=%F0%9F%90%88#d");
    const prompt = [
      { role: "system", content: "Be brief.", providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } },
      {
        role: "user",
        content: [
          { type: "text", text: "" },
          { type: "file", data: bytes, mediaType: "image/png", filename: "a.png" },
          { type: "file", data: url, mediaType: "image/*", providerOptions: { openai: { imageDetail: "low" } } },
          { type: "file", data: "AAEC", mediaType: "application/pdf" },
          { type: "file", data: { type: "data", data: bytes.subarray(0, 3) }, mediaType: "image" },
          { type: "file", data: { type: "url", url, originalUrl: "x" }, mediaType: "image" },
          { type: "file", data: { type: "reference", reference: { openai: "file_1" } }, mediaType: "image" },
        ],
        providerOptions: {},
      },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "", providerOptions: { openai: { itemId: "rs_1", encrypted: null } } },
          { type: "custom", kind: "x.y" },
          { type: "tool-call", toolCallId: "c", toolName: "t", input: { "memprefix:bytes": "AA==" } },
          { type: "tool-call", toolCallId: "d", toolName: "t", input: { "memprefix:object": { "memprefix:url": "" } } },
        ],
      },
      {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "c", toolName: "t", output: { type: "json", value: [null, {}, [], ""] } },
          { type: "tool-approval-response", approvalId: "a", approved: true },
        ],
      },
    ];
    expect(roundTrip(prompt)).toEqual(prompt);
  });

  it("comes back whatever JSON its parts hold", () => {
    const own = ["bytes", "url", "object"].map((kind) => `memprefix:${kind}`);
    const names = fc.constantFrom(...own, "type", "a", "providerOptions2");
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.uint8Array({ maxLength: 40 }),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(names, tie("value"), { maxKeys: 3, noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(value, (input) => {
        const prompt = [{ role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "t", input }] }];
        expect(roundTrip(prompt)).toEqual(prompt);
      }),
    );
  });

  it("has dates as providers send them, and no field that is undefined", () => {
    const input = { at: new Date(0), none: undefined };
    const [message] = messagesOf([{ role: "assistant", content: [{ type: "tool-call", input, extra: undefined }] }]);
    expect(message).toEqual({
      role: "assistant",
      content: [{ type: "tool-call", input: { at: "1970-01-01T00:00:00.000Z" } }],
    });
  });

  it("cannot be composed where it has a cycle or a bigint", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    for (const input of [cycle, 1n])
      expect(() => messagesOf([{ role: "user", content: [{ type: "tool-call", input }] }])).toThrow(TypeError);
  });

  it("has the parts and texts that the SDK wants in what memprefix adds", () => {
    const added = [
      {
        role: "system",
        content: [
          { type: "text", text: "Be " },
          { type: "text", text: "brief." },
        ],
      },
      { role: "user", content: "Tea?" },
      { role: "user", content: [{ type: "text", text: "<memories>" }] },
    ];
    expect(promptOf(added)).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Tea?" }] },
      { role: "user", content: [{ type: "text", text: "<memories>" }] },
    ]);
  });

  const text = (value: string) => ({ type: "text", value });
  const [a, memories] = ["a", "S"].map((said) => ({ type: "text", text: said }));

  it.each([
    [text("12 degrees."), text("12 degrees.\n\nS")],
    [text(""), text("S")],
    [{ type: "json", value: { a: [1] } }, text('{"a":[1]}\n\nS')],
    [
      { type: "error-text", value: "no" },
      { type: "error-text", value: "no\n\nS" },
    ],
    [
      { type: "error-json", value: null },
      { type: "error-text", value: "null\n\nS" },
    ],
    [
      { type: "execution-denied", reason: "no" },
      { type: "error-text", value: "no\n\nS" },
    ],
    [
      { type: "content", value: [a] },
      { type: "content", value: [a, memories] },
    ],
  ])("has memories in a tool's result %j as %j", (output, expected) => {
    const result = { type: "tool-result", toolCallId: "c", toolName: "t", output };
    const approval = { type: "tool-approval-response", approvalId: "a", approved: true };
    const message = { role: "tool", content: [result, approval, { type: "text", text: "S" }] };
    expect(promptOf([message])).toEqual([{ role: "tool", content: [{ ...result, output: expected }, approval] }]);
  });

  it("has memories behind results in a message of the user's where there is no result", () => {
    const approval = { type: "tool-approval-response", approvalId: "a", approved: true };
    const text = { type: "text", text: "S" };
    expect(promptOf([{ role: "tool", content: [approval, text] }])).toEqual([
      { role: "tool", content: [approval] },
      { role: "user", content: [text] },
    ]);
  });

  it("has cache marks as options of the provider's, beside the caller's own", () => {
    const mark = { type: "ephemeral" };
    const own = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" }, x: 1 }, openai: { y: 2 } };
    const prompt = [{ role: "user", content: [{ type: "text", text: "a", providerOptions: own }] }];
    const [message] = messagesOf(prompt);
    expect(message).toEqual({
      role: "user",
      content: [{ type: "text", text: "a", providerOptions: own, cache_control: own.anthropic.cacheControl }],
    });
    expect(promptOf([message as never])).toEqual(prompt);
    const marked = [
      { role: "system", content: [{ type: "text", text: "a", cache_control: mark }] },
      { role: "user", content: [{ type: "text", text: "b", prompt_cache_breakpoint: { mode: "explicit" } }] },
    ];
    expect(promptOf(marked)).toEqual([
      { role: "system", content: "a", providerOptions: { anthropic: { cacheControl: mark } } },
      {
        role: "user",
        content: [
          { type: "text", text: "b", providerOptions: { openai: { promptCacheBreakpoint: { mode: "explicit" } } } },
        ],
      },
    ]);
  });
});
