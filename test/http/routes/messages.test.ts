import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, it, vi } from "vitest";
import { streamFixture } from "../../engines/upstream/fixture.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer, sendAnthropic, streamAnthropic } from "./anthropic-server.js";
import { observedBy } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";

const TEA = "Ada drinks green tea";
const ASK = {
  model: "claude-opus-4-8",
  max_tokens: 50,
  system: "Be brief.",
  messages: [{ role: "user" as const, content: "Which tea?" }],
};

describe("Anthropic's own client, with Anthropic's API behind", () => {
  const anthropic = anthropicServer();
  const source = answeringSource([TEA]);
  const app = servedApp({
    source: () => source,
    upstream: anthropic,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic", MEMPREFIX_RETENTION: "keep" },
  });
  const client = (headers: Record<string, string> = {}) =>
    messagesClientOf(app, { "x-memprefix-user": "ada", ...headers });

  it("gets the answer unmodified to a prompt with the user's memories, everything else as it was sent", async () => {
    const { data, response } = await client({ "anthropic-beta": "b" })
      .messages.create({ ...ASK, stop_sequences: ["."], metadata: { user_id: "someone" } })
      .withResponse();
    expect(data.content).toEqual([{ type: "text", text: "Green tea." }]);
    const [call] = anthropic.calls;
    expect(call).toMatchObject({ method: "POST", url: "/v1/messages" });
    expect(call?.headers).toMatchObject({
      authorization: "Bearer sk-ant-of-the-client",
      "anthropic-version": expect.any(String),
      "anthropic-beta": "b",
    });
    const { system, messages, ...others } = call?.body ?? { messages: [] };
    expect(others).toEqual({
      model: ASK.model,
      max_tokens: 50,
      stop_sequences: ["."],
      metadata: { user_id: "someone" },
    });
    expect(JSON.stringify(system)).toContain("Be brief.");
    const [, asked] = plain({ system, messages });
    expect(asked?.blocks.map((block) => block["text"]).join("")).toBe(
      `<memories>\n- ${TEA}\n</memories>\n\nWhich tea?`,
    );
    expect(response.headers.get("x-memprefix-cached-tokens")).toBe("2000");
    expect(response.headers.get("request-id")).toBe("req_018EeWyXxfu5pfWkrYcMdjWG");
    expect(await observedBy(app)).toMatchObject({ promptTokens: 2209, cachedTokens: 2000 });
  });

  it("gets every event of a stream, with a tool's call, byte for byte", async () => {
    // The client keeps pings for itself.
    const events = streamFixture("anthropic-stream").events.filter((event) => !JSON.stringify(event).includes("ping"));
    const stream = client().messages.stream(ASK);
    const seen: unknown[] = [];
    stream.on("streamEvent", (event) => seen.push(JSON.parse(JSON.stringify(event))));
    const message = await stream.finalMessage();
    expect(seen).toEqual(events);
    expect(message.content.map(({ type }) => type)).toEqual(["text", "tool_use"]);
    expect(await observedBy(app)).toEqual({ promptTokens: 2572, cachedTokens: 2000, ttftMs: expect.any(Number) });
  });

  it("may send its key and the API's version as it likes", async () => {
    const body = { ...ASK, metadata: { user_id: "ada" } };
    await client({ "x-api-key": "sk-ant-own", authorization: "Bearer oauth" }).messages.create(ASK);
    await app.send("POST", "/v1/messages", body);
    expect(anthropic.calls[0]?.headers).toMatchObject({ "x-api-key": "sk-ant-own", authorization: "Bearer oauth" });
    for (const name of ["anthropic-version", "x-api-key"]) expect(anthropic.calls[1]?.headers).not.toHaveProperty(name);
  });

  it("is named by metadata.user_id where nothing else names the user, and is sent as it is where that is missing too", async () => {
    source.queries.length = 0;
    const unnamed = messagesClientOf(app, {});
    await unnamed.messages.create({ ...ASK, metadata: { user_id: "of-the-body" } });
    expect(source.queries[0]).toMatchObject({ scope: { userId: "of-the-body" } });
    const { response } = await unnamed.messages.create(ASK).withResponse();
    expect(response.headers.get("x-memprefix-not-composed")).toBe("no_user");
    expect(anthropic.calls.at(-1)?.body).toEqual(ASK);
  });

  it("gets memories behind a tool's result, thinking and its signature untouched, and a prefix that only grows", async () => {
    const tools = [{ name: "weather", input_schema: { type: "object" as const } }];
    const thought = { type: "thinking" as const, thinking: "The weather first.", signature: "EqQBCgIYAhIM" };
    const call = { type: "tool_use" as const, id: "toolu_1", name: "weather", input: { z: 1, a: [2] } };
    const answers = [
      { content: [thought, call], stop_reason: "tool_use" },
      { content: [{ type: "text", text: "Hot tea." }], stop_reason: "end_turn" },
      { content: [{ type: "text", text: "Sure." }], stop_reason: "end_turn" },
    ];
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      output_tokens: 5,
    };
    anthropic.behave((response) =>
      sendAnthropic(response, 200, {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: ASK.model,
        stop_sequence: null,
        usage,
        ...answers[anthropic.calls.length - 1],
      }),
    );
    const agent = client({ "x-memprefix-conversation": "kitchen" });
    const messages: Anthropic.MessageParam[] = [...ASK.messages];
    const step = async () => {
      const { content } = await agent.messages.create({ ...ASK, tools, messages });
      messages.push({ role: "assistant", content });
    };
    await step();
    source.found = [TEA, "Ada is cold"];
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "2 C" }] });
    await step();
    source.found = ["Ada is tired"];
    messages.push({ role: "user", content: "Sure?" });
    await step();
    source.found = [TEA];
    const sent = anthropic.calls.map(({ body }) => plain(body));
    expect(sent[1]?.[2]).toEqual({ role: "assistant", blocks: [thought, call] });
    expect(sent[1]?.[3]?.blocks[0]).toEqual({ type: "tool_result", tool_use_id: "toolu_1", content: "2 C" });
    expect(JSON.stringify(sent[1]?.[3]?.blocks.slice(1))).toContain("Ada is cold");
    expect(sent[1]?.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    for (const [at, prompt] of sent.entries()) {
      const before = sent[at - 1];
      if (before !== undefined) expect(JSON.stringify(prompt.slice(0, before.length))).toBe(JSON.stringify(before));
    }
  });

  it("may leave its history to memprefix, instructions and tool results included", async () => {
    const agent = client({ "x-memprefix-conversation": "kitchen", "x-memprefix-history": "stored" });
    const call = { type: "tool_use" as const, id: "toolu_1", name: "weather", input: { a: [2] } };
    const result = { type: "tool_result" as const, tool_use_id: "toolu_1", content: "2 C" };
    const turns: Anthropic.MessageParam[][] = [
      [...ASK.messages],
      [
        { role: "assistant", content: [call] },
        { role: "user", content: [result, { type: "text", text: "Well?" }] },
      ],
      [
        { role: "assistant", content: "Hot tea." },
        { role: "user", content: "Sure?" },
      ],
    ];
    for (const messages of turns) await agent.messages.create({ ...ASK, messages });
    const sent = anthropic.calls.map(({ body }) => plain(body));
    expect(sent[2]?.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user", "assistant", "user"]);
    expect(sent[2]?.[3]?.blocks[0]).toEqual(result);
    for (const [at, prompt] of sent.entries()) {
      const before = sent[at - 1] ?? [];
      expect(prompt.slice(0, before.length)).toEqual(before);
    }
  });

  it("gets memories where it begins a thread, and is sent as it is where it goes on with one, whose messages memprefix does not have", async () => {
    const asked = { ...ASK, thread: { type: "continue", previous_message_id: "msg_1" }, metadata: { user_id: "ada" } };
    for (const thread of [{ type: "create" }, asked.thread])
      expect((await app.send("POST", "/v1/messages", { ...asked, thread })).status).toBe(200);
    expect(anthropic.calls[0]?.body).toMatchObject({ thread: { type: "create" } });
    expect(JSON.stringify(anthropic.calls[0]?.body)).toContain(TEA);
    expect(anthropic.calls[1]?.body).toEqual(asked);
  });

  it("writes an exchange back as a memory, streamed or not", async () => {
    const body = { ...ASK, memprefix: { user_id: "ada", write_back: true } };
    const count = source.added.length;
    await app.send("POST", "/v1/messages", body);
    await vi.waitFor(() => expect(source.added).toHaveLength(count + 1));
    expect(source.added.at(-1)?.text).toBe("User: Which tea?\nAssistant: Green tea.");
    expect(anthropic.calls[0]?.body).not.toHaveProperty("memprefix");
    const events = streamFixture("anthropic-stream").events.filter(
      (event) => !JSON.stringify(event).includes('"index":1'),
    );
    const ended = JSON.parse(JSON.stringify(events).replace('"stop_reason":"tool_use"', '"stop_reason":"end_turn"'));
    anthropic.behave((response) => streamAnthropic(response, ended as unknown[]));
    await app.send("POST", "/v1/messages", { ...body, stream: true });
    await vi.waitFor(() => expect(source.added).toHaveLength(count + 2));
    expect(source.added.at(-1)?.text).toContain("Assistant: Okay, let");
  });

  it("counts tokens by the engine, and names nobody for that", async () => {
    anthropic.behave((response) => sendAnthropic(response, 200, { input_tokens: 14 }));
    const { max_tokens: _most, ...counted } = ASK;
    const asked = { ...counted, memprefix: { user_id: "ada" } };
    expect(await messagesClientOf(app, {}).messages.countTokens(asked)).toEqual({ input_tokens: 14 });
    expect(anthropic.calls[0]).toMatchObject({ url: "/v1/messages/count_tokens", body: counted });
    expect(anthropic.calls[0]?.headers).toMatchObject({ authorization: "Bearer sk-ant-of-the-client" });
  });

  it.each([
    ["/v1/messages", "{", 400, "invalid_request_error"],
    ["/v1/messages/count_tokens", "{", 400, "invalid_request_error"],
  ])("gets memprefix's own errors in Anthropic's form: %s", async (path, body, status, type) => {
    const exchange = await app.send("POST", path, body);
    expect(exchange).toMatchObject({ status, contentType: "application/problem+json" });
    expect(JSON.parse(exchange.text)).toMatchObject({ type: "error", status, error: { type } });
  });
});

describe("with a key of the service's own", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    upstream: anthropic,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic", MEMPREFIX_UPSTREAM_API_KEY: "sk-ant-of-the-service" },
  });

  it("the engine gets that one, whatever the client's is", async () => {
    await messagesClientOf(app, { "x-memprefix-user": "ada", authorization: "Bearer of-the-client" }).messages.create(
      ASK,
    );
    expect(anthropic.calls[0]?.headers).toMatchObject({ authorization: "Bearer sk-ant-of-the-service" });
    expect(anthropic.calls[0]?.headers).not.toHaveProperty("x-api-key");
  });
});

/** A prompt as the model sees it: no breakpoints, every content as blocks, a text that was split for a breakpoint as one. */
function plain(body: unknown): { readonly role: string; readonly blocks: readonly Record<string, unknown>[] }[] {
  const { system, messages } = body as {
    readonly system: unknown;
    readonly messages: readonly Anthropic.MessageParam[];
  };
  return [{ role: "system", content: system }, ...messages].map(({ role, content }) => {
    const given =
      typeof content === "string" ? [{ type: "text", text: content }] : (content as Record<string, unknown>[]);
    const blocks: Record<string, unknown>[] = [];
    for (const { cache_control: _mark, ...block } of given as Record<string, unknown>[]) {
      const last = blocks.at(-1);
      if (last?.["type"] === "text" && block["type"] === "text") last["text"] = `${last["text"]}${block["text"]}`;
      else blocks.push({ ...block });
    }
    return { role, blocks };
  });
}
