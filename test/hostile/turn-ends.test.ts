/*
 * Attacked: agents whose engine says `stop` or `end_turn` beside a tool call, nothing at all, or a word of its own. Broke: a client that goes by
 * the turn's end stopped in front of the call. Held: what was cut or withheld is said to be so, whatever else the turn holds.
 */
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer, sendAnthropic, streamAnthropic } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendEvents, sendJson } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { type Door, turnAt } from "./doors.js";

const WHOLE = { id: "call_1", type: "function", function: { name: "one", arguments: '{"t":1}' } };
const CUT = { id: "call_1", type: "function", function: { name: "one", arguments: '{"t":' } };
const OLDER = { function_call: WHOLE.function };
const CALLED = { content: null, tool_calls: [WHOLE] };
const ANSWERED = { content: "Done." };
const REFUSED = { content: null, refusal: "No." };
const BESIDE = { content: "I look.", tool_calls: [WHOLE] };

const LENGTH = "incomplete max_output_tokens";
/** What an engine's message and its finish reason are as Anthropic's `stop_reason`, and as a response's status. */
const OF_CHATS: readonly [message: object, finish: unknown, stopReason: string, status: string][] = [
  [CALLED, "stop", "tool_use", "completed"],
  [BESIDE, "stop", "tool_use", "completed"],
  [CALLED, "tool_calls", "tool_use", "completed"],
  [CALLED, "function_call", "tool_use", "completed"],
  [OLDER, "function_call", "tool_use", "completed"],
  [OLDER, "stop", "tool_use", "completed"],
  [CALLED, null, "tool_use", "completed"],
  [CALLED, "", "tool_use", "completed"],
  [CALLED, "eos_token", "tool_use", "completed"],
  [CALLED, "end_turn", "tool_use", "completed"],
  [CALLED, "length", "max_tokens", LENGTH],
  [{ content: null, tool_calls: [CUT] }, "length", "max_tokens", LENGTH],
  [{ content: null, tool_calls: [CUT] }, "stop", "max_tokens", LENGTH],
  [{ content: null, tool_calls: [CUT] }, null, "max_tokens", LENGTH],
  [{ content: null, tool_calls: [WHOLE, { ...CUT, id: "call_2" }] }, "end_turn", "max_tokens", LENGTH],
  [{ content: null, function_call: CUT.function }, "stop", "max_tokens", LENGTH],
  [{ content: null, tool_calls: [CUT] }, "tool_calls", "tool_use", "completed"],
  [BESIDE, "model_length", "max_tokens", LENGTH],
  [CALLED, "content_filter", "refusal", "incomplete content_filter"],
  [ANSWERED, "tool_calls", "end_turn", "completed"],
  [{ ...ANSWERED, tool_calls: [] }, "tool_calls", "end_turn", "completed"],
  [{ ...ANSWERED, tool_calls: null, function_call: null }, "stop", "end_turn", "completed"],
  [{ ...ANSWERED, tool_calls: [{}, null] }, "stop", "end_turn", "completed"],
  [ANSWERED, null, "end_turn", "completed"],
  [ANSWERED, "eos_token", "end_turn", "completed"],
  [ANSWERED, "max_tokens", "max_tokens", LENGTH],
  [CALLED, "STOP", "tool_use", "completed"],
  [CALLED, "MAX_TOKENS", "max_tokens", LENGTH],
  [ANSWERED, "max_output_tokens", "max_tokens", LENGTH],
  [ANSWERED, "content-filter", "refusal", "incomplete content_filter"],
  [ANSWERED, "SAFETY", "refusal", "incomplete content_filter"],
  [ANSWERED, "guardrail_intervened", "refusal", "incomplete content_filter"],
  [CALLED, "error", "max_tokens", LENGTH],
  [ANSWERED, "network_error", "max_tokens", LENGTH],
  [ANSWERED, "insufficient_system_resource", "max_tokens", LENGTH],
  [ANSWERED, "abort", "max_tokens", LENGTH],
  [ANSWERED, "sensitive", "refusal", "incomplete content_filter"],
  [ANSWERED, "IMAGE_SAFETY", "refusal", "incomplete content_filter"],
  [ANSWERED, "content_filter: RECITATION", "refusal", "incomplete content_filter"],
  [CALLED, "content_filter: PROHIBITED_CONTENT", "refusal", "incomplete content_filter"],
  [{ content: null }, "function_call_filter: MALFORMED_FUNCTION_CALL", "max_tokens", LENGTH],
  [ANSWERED, "MALFORMED_FUNCTION_CALL", "max_tokens", LENGTH],
  [ANSWERED, "FINISH_REASON_MAX_TOKENS", "max_tokens", LENGTH],
  [ANSWERED, "maxTokens", "max_tokens", LENGTH],
  [ANSWERED, "LANGUAGE", "refusal", "incomplete content_filter"],
  [ANSWERED, "time_limit", "max_tokens", LENGTH],
  [CALLED, "toolCalls", "tool_use", "completed"],
  [REFUSED, "stop", "refusal", "completed"],
  [REFUSED, "content_filter", "refusal", "incomplete content_filter"],
];

describe("a turn's end, of an engine with chat completions", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });
  const behave = (message: object, finish_reason: unknown) =>
    engine.behave(({ url, body }, response) => {
      if (url !== "/v1/chat/completions") return sendJson(response, 404, { detail: "Not Found" });
      const head = { id: "chatcmpl-1", model: "stub-1" };
      if (!body.stream)
        return sendJson(response, 200, {
          ...head,
          choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
        });
      const chunk = (delta: object, finish: unknown) => ({
        ...head,
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
      return sendEvents(response, [chunk(message, null), chunk({}, finish_reason)]);
    });

  it.each(["messages", "responses"] as const)("is told by what the turn holds: %s", async (door) => {
    for (const [message, finish, stopReason, status] of OF_CHATS) {
      behave(message, finish);
      for (const stream of [false, true]) {
        const said = JSON.stringify({ message, finish, stream });
        const { end } = await turnAt(app.base, door, stream);
        expect([said, end]).toEqual([said, door === "messages" ? stopReason : status]);
      }
    }
    expect(app.faults).toEqual([]);
  });

  it.each(["messages", "responses"] as const)("comes with its calls and refusals: %s", async (door) => {
    for (const stream of [false, true]) {
      behave(BESIDE, "stop");
      expect(await turnAt(app.base, door, stream)).toMatchObject({
        calls: [{ id: "call_1", name: "one", json: '{"t":1}' }],
        said: "I look.",
      });
      behave(OLDER, "function_call");
      expect((await turnAt(app.base, door, stream)).calls).toEqual([
        { id: expect.stringMatching(/^call_[\w-]+$/), name: "one", json: '{"t":1}' },
      ]);
      behave(REFUSED, "stop");
      expect((await turnAt(app.base, door, stream)).said).toBe("No.");
    }
  });
});

describe("an engine's error in an answer that began with 200", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });
  const error = { code: 502, message: "Provider returned error" };
  const said = { index: 0, finish_reason: "error" };
  const errors: Readonly<Record<string, (message: object) => object>> = {
    "of its own": () => ({ error }),
    "beside what it said": (message) => ({ error, choices: [{ ...said, ...message }] }),
    "of its choice, as OpenRouter's": (message) => ({ choices: [{ ...said, ...message, error }] }),
  };
  const post = async (door: "messages" | "responses", stream: boolean) => {
    const asked =
      door === "messages" ? { max_tokens: 9, messages: [{ role: "user", content: "Go." }] } : { input: "Go." };
    const { text } = await app.send("POST", `/users/ada/v1/${door}`, { model: "m", stream, ...asked });
    if (!stream) return [JSON.parse(text)];
    return text.split("\n").flatMap((line) => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
  };

  it.each(["messages", "responses"] as const)("is no turn's end: %s", async (door) => {
    for (const [what, answer] of Object.entries(errors)) {
      engine.behave(({ url, body }, response) => {
        if (url !== "/v1/chat/completions") return sendJson(response, 404, { detail: "Not Found" });
        if (!body.stream) return sendJson(response, 200, answer({ message: { role: "assistant", content: "So" } }));
        const begun = { choices: [{ index: 0, delta: { content: "So" }, finish_reason: null }] };
        return sendEvents(response, [begun, answer({ delta: { content: "" } })]);
      });
      const whole = (await post(door, false)).at(-1);
      const events = await post(door, true);
      if (door === "messages") {
        expect(whole, what).toMatchObject({ type: "error", error: { message: error.message } });
        expect(events.at(-1), what).toMatchObject({ type: "error", error: { message: error.message } });
      } else {
        expect(whole, what).toMatchObject({
          status: "failed",
          error: { code: "server_error", message: error.message },
        });
        expect(events.at(-1), what).toMatchObject({ type: "error", message: error.message });
      }
      expect(JSON.stringify(events), what).not.toMatch(/message_stop|response\.completed/);
    }
    expect(app.faults).toEqual([]);
  });
});

const TEXT = { type: "text", text: "Done." };
const USE = { type: "tool_use", id: "toolu_1", name: "one", input: { t: 1 } };
const SEARCH = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "tea" } };

/** Blocks and their stop reason as OpenAI's `finish_reason`, and as a response's status. */
const OF_MESSAGES: readonly [content: readonly object[], stop: unknown, finish: string, status: string][] = [
  [[TEXT, USE], "end_turn", "tool_calls", "completed"],
  [[USE], "end_turn", "tool_calls", "completed"],
  [[USE], "stop_sequence", "tool_calls", "completed"],
  [[USE], "pause_turn", "tool_calls", "completed"],
  [[USE], null, "tool_calls", "completed"],
  [[USE], "stop", "tool_calls", "completed"],
  [[USE], "tool_use", "tool_calls", "completed"],
  [[USE], "max_tokens", "length", LENGTH],
  [[USE], "refusal", "content_filter", "incomplete content_filter"],
  [[TEXT], "tool_use", "stop", "completed"],
  [[SEARCH, TEXT], "end_turn", "stop", "completed"],
  [[SEARCH, TEXT], "pause_turn", "stop", "completed"],
  [[TEXT], "model_context_window_exceeded", "length", LENGTH],
  [[USE], "MAX_TOKENS", "length", LENGTH],
  [[USE], "malformed_tool_use", "length", LENGTH],
  [[TEXT], "guardrailIntervened", "content_filter", "incomplete content_filter"],
  [[TEXT], "guardrail_intervened", "content_filter", "incomplete content_filter"],
];

describe("a turn's end, of Anthropic's API", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource([]),
    upstream: anthropic,
    environment: { MEMPREFIX_UPSTREAM_API: "anthropic" },
  });

  it.each(["chat/completions", "responses"] satisfies Door[])(
    "is that of a stream that ends behind it: %s",
    async (door) => {
      const message = { type: "message", id: "msg_1", role: "assistant", model: "claude", usage: {} };
      anthropic.behave((response) =>
        streamAnthropic(response, [
          { type: "message_start", message: { ...message, content: [], stop_reason: null } },
          { type: "content_block_start", index: 0, content_block: USE },
          { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: {} },
        ]),
      );
      const { end, calls } = await turnAt(app.base, door, true);
      expect([end, calls]).toEqual([
        door === "responses" ? "completed" : "tool_calls",
        [{ id: "toolu_1", name: "one", json: '{"t":1}' }],
      ]);
      expect(app.faults).toEqual([]);
    },
  );

  it.each(["chat/completions", "responses"] satisfies Door[])("is told by what the turn holds: %s", async (door) => {
    for (const [content, stop, finish, status] of OF_MESSAGES) {
      anthropic.behave((response, { body }) => {
        const message = { type: "message", id: "msg_1", role: "assistant", model: "claude", usage: {} };
        if (body["stream"] !== true) return sendAnthropic(response, 200, { ...message, content, stop_reason: stop });
        return streamAnthropic(response, [
          { type: "message_start", message: { ...message, content: [], stop_reason: null } },
          ...content.flatMap((content_block, index) => [
            { type: "content_block_start", index, content_block },
            { type: "content_block_stop", index },
          ]),
          { type: "message_delta", delta: { stop_reason: stop }, usage: {} },
          { type: "message_stop" },
        ]);
      });
      for (const stream of [false, true]) {
        const said = JSON.stringify({ content, stop, stream });
        const { end, calls } = await turnAt(app.base, door, stream);
        expect([said, end]).toEqual([said, door === "responses" ? status : finish]);
        expect(calls).toEqual(content.includes(USE) ? [{ id: "toolu_1", name: "one", json: '{"t":1}' }] : []);
      }
    }
    expect(app.faults).toEqual([]);
  });
});
