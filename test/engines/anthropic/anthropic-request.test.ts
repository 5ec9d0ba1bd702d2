import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { marksElsewhereIn } from "../../../src/engines/adapters/engine-adapter.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { DEFAULT_MAX_TOKENS, toAnthropicMessages } from "../../../src/engines/anthropic/anthropic-request.js";
import { answered, asked, promptOf, system } from "../adapters/prompts.js";

const mark = { type: "ephemeral" };
const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"at":"Paris"}' } };
const body = (messages: readonly ChatMessage[], more: Readonly<Record<string, unknown>> = {}) =>
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

  it("leaves out texts of nothing but white space, which the API refuses, and moves their marks", () => {
    const text = (text: string, more: object = {}) => ({ type: "text", text, ...more });
    const marked = { cache_control: mark };
    const blank = ["\n\n", " ", "\t\u00a0"];
    const used = { type: "tool_use", id: "call_1", name: "weather", input: { at: "Paris" } };
    const first = [
      { role: "system", content: [text("Be brief."), text("\n", marked)] },
      { role: "system", content: " " },
      { role: "user", content: "Weather?" },
      { role: "assistant", content: "\n\n", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: [text("Sunny"), text(" ", marked)] },
    ];
    const converted = body(first);
    expect(converted).toMatchObject({
      system: [text("Be brief.", marked)],
      messages: [
        { role: "user", content: [text("Weather?")] },
        { role: "assistant", content: [used] },
        { role: "user", content: [{ type: "tool_result", content: [text("Sunny")], ...marked }] },
      ],
    });
    expect(converted.system).toHaveLength(1);
    expect(converted.messages[2]?.content[0]?.["content"]).toHaveLength(1);
    const answer = { role: "assistant", content: "Warm." };
    const later = body([
      ...first,
      answer,
      ...blank.map((content) => ({ role: "user", content })),
      { role: "user", content: [text("And?"), text(" ")], cache_control: mark },
    ]);
    // What was sent before begins it.
    expect(later.messages.slice(0, 3)).toEqual(converted.messages);
    expect(later.messages.slice(3)).toEqual([
      { role: "assistant", content: [text("Warm.")] },
      { role: "user", content: [text("And?", marked)] },
    ]);
  });

  it("leaves them out where kept blocks split a text, which stays in its place", () => {
    const text = (text: string, more: object = {}) => ({ type: "text", text, ...more });
    const thought = { type: "thinking", thinking: "Hm.", signature: "s" };
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: {} };
    const at = (characters: number) => ({ anthropic_place: { characters, calls: 0 } });
    const said = (content: ChatMessage["content"], kept: readonly object[], more: object = {}) =>
      body([
        { role: "user", content: "Tea?" } as never,
        { role: "assistant", content, anthropic_blocks: kept, ...more },
      ]).messages[1]?.content;
    const kept = [thought, { ...search, ...at(2) }];
    expect(said("\n\nGreen.", kept)).toEqual([thought, search, text("Green.")]);
    expect(said([text("\n\n"), text("Green.")], kept)).toEqual([thought, search, text("Green.")]);
    expect(said("Green.\n", [thought, { ...search, ...at(6) }], { cache_control: mark })).toEqual([
      thought,
      text("Green."),
      { ...search, cache_control: mark },
    ]);
    expect(said("\n", [thought], { tool_calls: [call], cache_control: mark })).toMatchObject([
      thought,
      { type: "tool_use" },
    ]);
    // A message that ends with thinking is refused, too.
    expect(said("\n", [thought])).toBeUndefined();
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
