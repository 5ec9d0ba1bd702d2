import { describe, expect, it } from "vitest";
import { marksElsewhereIn } from "../../../src/engines/adapters/engine-adapter.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { DEFAULT_MAX_TOKENS, toAnthropicMessages } from "../../../src/engines/anthropic/anthropic-request.js";
import { answered, asked, promptOf, system } from "../adapters/prompts.js";

const mark = { type: "ephemeral" };
const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"at":"Paris"}' } };
const body = (messages: readonly { readonly role: string }[], more: Readonly<Record<string, unknown>> = {}) =>
  toAnthropicMessages({ messages, ...more });

describe("a chat body for /v1/messages", () => {
  it("has the instructions in `system` and the marks where emit set them", () => {
    const prompt = promptOf([system, asked("Tea?"), answered, asked("And where?", 1)], {
      reusableMessages: [3, 0],
      reusableMemories: 3,
      cachedMessage: 1,
    });
    const { messages } = ENGINES.anthropic.emit(prompt);
    expect(body(messages, { model: "claude-opus-4-8", max_tokens: 100 })).toEqual({
      model: "claude-opus-4-8",
      max_tokens: 100,
      system: [{ type: "text", text: "Be brief.", cache_control: mark }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "<memories>\n- fact 1\n  and more\n- fact 2\n  and more\n" },
            { type: "text", text: "</memories>\n\nTea?", cache_control: mark },
          ],
        },
        { role: "assistant", content: [{ type: "text", text: "Green tea." }] },
        {
          role: "user",
          content: [
            { type: "text", text: "<memories>\n- fact 1\n  and more\n", cache_control: mark },
            { type: "text", text: "</memories>\n\nAnd where?", cache_control: mark },
          ],
        },
      ],
    });
  });

  it("has tool calls, their results at the front of the user's turn, and the memories behind them", () => {
    const messages = [
      { role: "user", content: "Weather?" },
      { role: "assistant", content: null, tool_calls: [call, { ...call, id: "call_2" }] },
      { role: "tool", tool_call_id: "call_1", content: "Sunny" },
      { role: "tool", tool_call_id: "call_2", content: [{ type: "text", text: "Warm", cache_control: mark }] },
      { role: "user", content: "<memories>\n- x\n</memories>" },
    ];
    const input = { at: "Paris" };
    expect(body(messages).messages).toEqual([
      { role: "user", content: [{ type: "text", text: "Weather?" }] },
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "call_1", name: "weather", input },
          { type: "tool_use", id: "call_2", name: "weather", input },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_1", content: [{ type: "text", text: "Sunny" }] },
          {
            type: "tool_result",
            tool_use_id: "call_2",
            content: [{ type: "text", text: "Warm" }],
            cache_control: mark,
          },
          { type: "text", text: "<memories>\n- x\n</memories>" },
        ],
      },
    ]);
  });

  it("has tools, choices and limits in Anthropic's words, and nothing that it would refuse", () => {
    const parameters = { type: "object", properties: { at: { type: "string" } } };
    const tools = [
      { type: "function", function: { name: "weather", description: "Says it", parameters }, cache_control: mark },
      { type: "function", function: { name: "time" } },
    ];
    const said = {
      ...{
        model: "claude-opus-4-8",
        max_completion_tokens: 7,
        temperature: 1.6,
        top_p: 0.5,
        stop: "END",
        stream: true,
      },
      ...{ user: "u-1", tools, tool_choice: "required", parallel_tool_calls: false, reasoning_effort: "high" },
      ...{ response_format: { type: "json_schema", json_schema: { name: "n", schema: parameters } } },
      ...{ n: 1, seed: 1, logprobs: true, presence_penalty: 1, stream_options: { include_usage: true }, store: true },
    };
    const { messages: _messages, ...rest } = body([{ role: "user", content: "Hi" } as never], said);
    expect(rest).toEqual({
      model: "claude-opus-4-8",
      stream: true,
      top_p: 0.5,
      max_tokens: 7,
      temperature: 1,
      stop_sequences: ["END"],
      metadata: { user_id: "u-1" },
      tools: [
        { name: "weather", description: "Says it", input_schema: parameters, cache_control: mark },
        { name: "time", input_schema: { type: "object", properties: {} } },
      ],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
      output_config: { format: { type: "json_schema", schema: parameters }, effort: "high" },
    });
    expect(marksElsewhereIn({ tools, cache_control: mark })).toEqual({ tools: [mark], automatic: mark });
    expect(marksElsewhereIn({})).toEqual({ tools: [], automatic: null });
  });

  it("may always answer at some length, which the API wants to be told", () => {
    expect(body([{ role: "user", content: "Hi" } as never]).max_tokens).toBe(DEFAULT_MAX_TOKENS);
  });

  it("names one function where the caller does", () => {
    const tools = [{ type: "function", function: { name: "time" } }];
    const choice = { type: "function", function: { name: "time" } };
    const chosen = (more: Readonly<Record<string, unknown>>) => body([{ role: "user" }], more)["tool_choice"];
    expect(chosen({ tools, tool_choice: choice })).toEqual({ type: "tool", name: "time" });
    expect(chosen({ tools, tool_choice: "none" })).toEqual({ type: "none" });
    expect(chosen({ tools, parallel_tool_calls: false })).toEqual({ type: "auto", disable_parallel_tool_use: true });
    expect(chosen({ tool_choice: "auto" })).toBeUndefined();
  });

  it("takes images and files, and hands on what it does not know", () => {
    const content = [
      { type: "text", text: "" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" }, cache_control: mark },
      { type: "image_url", image_url: { url: "https://example.org/a.png" } },
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,BBBB" } },
      { type: "search_result", title: "kept" },
    ];
    expect(body([{ role: "user", content } as never]).messages[0]?.content).toEqual([
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" }, cache_control: mark },
      { type: "image", source: { type: "url", url: "https://example.org/a.png" } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "BBBB" }, title: "a.pdf" },
      { type: "search_result", title: "kept" },
    ]);
  });

  it("keeps what a model said where it was no JSON, and a mark on a message of its own", () => {
    const broken = { id: "c", type: "function", function: { name: "f", arguments: '{"at":' } };
    const { messages } = body([
      { role: "user", content: "Hi", cache_control: mark } as never,
      { role: "assistant", tool_calls: [broken] } as never,
    ]);
    expect(messages[0]?.content).toEqual([{ type: "text", text: "Hi", cache_control: mark }]);
    expect(messages[1]?.content).toEqual([{ type: "tool_use", id: "c", name: "f", input: { arguments: '{"at":' } }]);
  });
});
