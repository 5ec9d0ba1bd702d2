import { readOpenAiUsage } from "../../src/apis/api/usage.js";
import { APIS } from "../../src/apis/apis.js";
import { readMessagesUsage } from "../../src/apis/messages/answer.js";
import { record } from "../../src/core/text/json.js";
import { ANSWER, describeApi } from "./api.suite.js";

const [first, second] = ["Green ", "tea."];

const call = { id: "c1", type: "function", function: { name: "brew", arguments: "{}" } };
const chatUsage = {
  prompt_tokens: 120,
  completion_tokens: 4,
  prompt_tokens_details: { cached_tokens: 96 },
};
describeApi({
  api: APIS.chat,
  body: {
    model: "m",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Tea?" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "c1", content: "hot" },
      { role: "user", content: "Which?" },
    ],
    tools: [{ type: "function", function: { name: "brew" } }],
  },
  said: [
    ["system", "Be brief."],
    ["user", "Tea?"],
    ["assistant", ""],
    ["tool", "hot"],
    ["user", "Which?"],
  ],
  answer: {
    choices: [{ index: 0, message: { role: "assistant", content: ANSWER }, finish_reason: "stop" }],
    usage: chatUsage,
  },
  events: [
    { choices: [{ index: 0, delta: { role: "assistant", content: "" } }] },
    { choices: [{ index: 0, delta: { content: first } }] },
    { choices: [{ index: 0, delta: { content: second } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { choices: [], usage: chatUsage },
  ],
  call: {
    choices: [{ message: { role: "assistant", content: ANSWER, tool_calls: [call] }, finish_reason: "tool_calls" }],
  },
  readUsage: readOpenAiUsage,
  messageOf: (error) => record(error["error"])["message"],
});

const messagesUsage = { input_tokens: 20, cache_read_input_tokens: 96, cache_creation_input_tokens: 4 };
describeApi({
  api: APIS.messages,
  body: {
    model: "m",
    max_tokens: 100,
    system: "Be brief.",
    messages: [
      { role: "user", content: "Tea?" },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "brew", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "hot" }] },
      { role: "assistant", content: "Done." },
      { role: "user", content: "Which?" },
    ],
    tools: [{ name: "brew", input_schema: { type: "object" } }],
  },
  said: [
    ["system", "Be brief."],
    ["user", "Tea?"],
    ["assistant", ""],
    ["tool", "hot"],
    ["assistant", "Done."],
    ["user", "Which?"],
  ],
  answer: {
    type: "message",
    content: [{ type: "text", text: ANSWER }],
    stop_reason: "end_turn",
    usage: { ...messagesUsage, output_tokens: 4 },
  },
  events: [
    { type: "message_start", message: { usage: messagesUsage } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: first } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: second } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } },
    { type: "message_stop" },
  ],
  call: {
    type: "message",
    content: [
      { type: "text", text: ANSWER },
      { type: "tool_use", id: "c1", name: "brew", input: {} },
    ],
    stop_reason: "tool_use",
  },
  readUsage: readMessagesUsage,
  messageOf: (error) => record(error["error"])["message"],
});

const answered = {
  object: "response",
  id: "resp_1",
  status: "completed",
  output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: ANSWER }] }],
  usage: { input_tokens: 120, output_tokens: 4, input_tokens_details: { cached_tokens: 96 } },
};
describeApi({
  api: APIS.responses,
  body: {
    model: "m",
    instructions: "Be brief.",
    input: [
      { role: "user", content: "Tea?" },
      { type: "function_call", call_id: "c1", name: "brew", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "hot" },
      { role: "user", content: "Which?" },
    ],
    tools: [{ type: "function", name: "brew" }],
  },
  said: [
    ["system", "Be brief."],
    ["user", "Tea?"],
    ["assistant", ""],
    ["tool", "hot"],
    ["user", "Which?"],
  ],
  answer: answered,
  events: [
    { type: "response.created", response: { ...answered, status: "in_progress", output: [], usage: null } },
    { type: "response.output_text.delta", delta: first },
    { type: "response.output_text.delta", delta: second },
    { type: "response.output_text.done", text: ANSWER },
    { type: "response.completed", response: answered },
  ],
  call: { ...answered, output: [...answered.output, { type: "function_call", name: "brew", call_id: "c1" }] },
  readUsage: readOpenAiUsage,
  messageOf: (error) => record(error["error"])["message"],
});
