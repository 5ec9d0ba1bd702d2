/*
 * Attacked: reasoning that the engine did not give: conversations that came from another kind of engine, signatures beside texts and calls
 * that were changed, seals of memprefix's that reach an engine. Broke: blocks without a signature went to Anthropic's API, which refuses them;
 * fields of Anthropic's blocks went to engines of chat completions.
 * Held: what a client does not return is not made up.
 */
import { afterEach, describe, expect, it, vi } from "vitest";
import { readSettings } from "../../src/cli/settings.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer, sendAnthropic } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendJson, wholeAnswer } from "../http/routes/openai-engine.js";
import { responseObject } from "../http/routes/responses-engine.js";
import { rowCounts } from "../http/routes/stored-rows.js";
import { type StartedApp, servedApp, startApp } from "../http/server/served-app.js";
import type { Json } from "./reasoning-engines.js";

const TOOL = { name: "look", input_schema: { type: "object" } };
const USE = { type: "tool_use", id: "t1", name: "look", input: { at: "sky" } };
const RESULT = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "Blue." }] };
const USAGE = { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10, prompt_tokens_details: { cached_tokens: 0 } };
const DETAIL = { type: "reasoning.text", text: "Look up.", signature: "sig+/==", format: "f", index: 0 };
const CALL = { id: "t1", type: "function", function: { name: "look", arguments: '{"at":"sky"}' } };
const SIGNED_CALL = { ...CALL, extra_content: { google: { thought_signature: "thought+/==" } } };
const EMPTY_MESSAGE = {
  id: "m",
  type: "message",
  role: "assistant",
  content: [{ type: "text", text: "Blue." }],
  stop_reason: "end_turn",
  usage: { input_tokens: 1, output_tokens: 1 },
};

/** Posts a body as a client of any API does. */
async function post(base: string, path: string, body: Json, conversation = "c"): Promise<Json> {
  const response = await fetch(`${base}/v1/${path}`, {
    method: "POST",
    headers: {
      connection: "close",
      "content-type": "application/json",
      "x-memprefix-user": "ada",
      "x-memprefix-conversation": conversation,
    },
    body: JSON.stringify({ model: "m", ...body }),
  });
  const answer = (await response.json()) as Json;
  expect(answer["error"] ?? null).toBeNull();
  return answer;
}

/** The running loop of a client of the Messages API, whose assistant said this. */
const loop = (...said: readonly Json[]) => ({
  max_tokens: 99,
  tools: [TOOL],
  messages: [{ role: "user", content: "Which colour?" }, { role: "assistant", content: [...said, USE] }, RESULT],
});
const items = (...said: readonly Json[]) => ({
  tools: [{ type: "function", name: "look", parameters: TOOL.input_schema }],
  input: [
    { role: "user", content: "Which colour?" },
    ...said,
    { type: "function_call", call_id: "t1", name: "look", arguments: '{"at":"sky"}' },
    { type: "function_call_output", call_id: "t1", output: "Blue." },
  ],
});
const chat = (said: Json) => ({
  messages: [
    { role: "user", content: "Which colour?" },
    { role: "assistant", content: null, ...said, tool_calls: [CALL] },
    { role: "tool", tool_call_id: "t1", content: "Blue." },
  ],
});

interface Moved {
  readonly what: string;
  readonly path: string;
  readonly body: Json;
  /** What the assistant's message has beside its call. */
  readonly has: Json;
}

const MOVED: readonly Moved[] = [
  {
    what: "thinking that Anthropic signed",
    path: "messages",
    body: loop({ type: "thinking", thinking: "Hm.", signature: "SIGNED" }),
    has: { reasoning_content: "Hm." },
  },
  {
    what: "two blocks of it, and a redacted one",
    path: "messages",
    body: loop(
      { type: "thinking", thinking: "Hm, ", signature: "SIGNED" },
      { type: "redacted_thinking", data: "SIGNED" },
      { type: "thinking", thinking: "so.", signature: "SIGNED" },
    ),
    has: { reasoning_content: "Hm, so." },
  },
  {
    what: "thinking without a signature",
    path: "messages",
    body: loop({ type: "thinking", thinking: "Hm.", signature: "" }),
    has: { reasoning_content: "Hm." },
  },
  { what: "redacted thinking", path: "messages", body: loop({ type: "redacted_thinking", data: "SIGNED" }), has: {} },
  {
    what: "a seal that was damaged",
    path: "messages",
    body: loop({ type: "thinking", thinking: "Hm.", signature: "memprefix.reasoning.SIGNED" }),
    has: { reasoning_content: "Hm." },
  },
  {
    what: "blocks of Anthropic's in a chat",
    path: "chat/completions",
    body: chat({
      reasoning_content: "Hm.",
      anthropic_blocks: [{ type: "thinking", thinking: "Hm.", signature: "SIGNED" }],
    }),
    has: { reasoning_content: "Hm." },
  },
  {
    what: "a summary of what OpenAI encrypted",
    path: "responses",
    body: items({
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "Hm." }],
      encrypted_content: "SIGNED",
    }),
    has: { reasoning_content: "Hm." },
  },
  {
    what: "what OpenAI encrypted alone",
    path: "responses",
    body: items({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "SIGNED" }),
    has: {},
  },
  {
    what: "an item with its text",
    path: "responses",
    body: items({ type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] }),
    has: { reasoning_content: "Hm." },
  },
];

const chatsOnly = (answer: Json, choice: Json = {}) => {
  return ({ url }: { readonly url: string }, response: Parameters<typeof sendJson>[0]) =>
    url === "/v1/chat/completions"
      ? sendJson(response, 200, wholeAnswer("", USAGE, answer, choice))
      : sendJson(response, 404, { detail: "Not Found" });
};

describe("an engine of chat completions", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });
  const sent = () => {
    const { messages } = JSON.parse(engine.requests.at(-1)?.raw ?? "") as { messages: readonly Json[] };
    return messages.find(({ role }) => role === "assistant") ?? {};
  };

  it.each(MOVED)("gets the text of $what, and no signature", async ({ path, body, has }) => {
    engine.behave(chatsOnly({ content: "Blue." }));
    await post(app.base, path, body);
    const { content, tool_calls, ...beside } = sent();
    expect(beside).toEqual({ role: "assistant", ...has });
    expect(content ?? "").toBe("");
    expect(tool_calls).toMatchObject([{ id: "t1" }]);
    expect(engine.requests.at(-1)?.raw).not.toMatch(/SIGNED|memprefix\.reasoning/);
  });

  it.each(["messages", "responses"])("gets what it signed with its own text alone (%s)", async (path) => {
    engine.behave(
      chatsOnly(
        { reasoning: "Look up.", reasoning_details: [DETAIL], tool_calls: [SIGNED_CALL] },
        { finish_reason: "tool_calls" },
      ),
    );
    const answer = await post(app.base, path, path === "messages" ? loop() : items());
    const given = ((path === "messages" ? answer["content"] : answer["output"]) ?? []) as readonly Json[];
    const said = given.filter(({ type }) => type !== "tool_use" && type !== "function_call");
    let times = 0;
    const again = async (change: (json: string) => string, changed = said) => {
      const own = JSON.parse(change(JSON.stringify(changed))) as readonly Json[];
      await post(app.base, path, path === "messages" ? loop(...own) : items(...own), `again ${times++}`);
      return sent();
    };
    expect(await again((json) => json)).toMatchObject({
      reasoning: "Look up.",
      reasoning_details: [DETAIL],
      tool_calls: [SIGNED_CALL],
    });
    const changed = await again((json) => json.replaceAll("Look up.", "Look down."));
    expect(changed).toMatchObject({ reasoning: "Look down." });
    expect(changed).not.toHaveProperty("reasoning_details");
    // What is sealed alone is the text of a client that returns no other; a chat's client returns it all.
    const dropped = await again((json) => json, []);
    expect(Object.keys(dropped).filter((name) => name.startsWith("reasoning"))).toEqual([]);
    expect(dropped["tool_calls"]).toEqual([CALL]);
  });

  it.each(["messages", "responses"])("gets no signature of a call with a call that was changed (%s)", async (path) => {
    engine.behave(chatsOnly({ tool_calls: [SIGNED_CALL] }, { finish_reason: "tool_calls" }));
    const answer = await post(app.base, path, path === "messages" ? loop() : items());
    const given = ((path === "messages" ? answer["content"] : answer["output"]) ?? []) as readonly Json[];
    const body = path === "messages" ? loop(...given.slice(1)) : items(...given.slice(1));
    await post(app.base, path, body, "as given");
    expect(sent()["tool_calls"]).toEqual([SIGNED_CALL]);
    await post(app.base, path, JSON.parse(JSON.stringify(body).replaceAll("sky", "sea")) as Json, "changed");
    expect(sent()["tool_calls"]).toEqual([JSON.parse(JSON.stringify(CALL).replace("sky", "sea"))]);
  });

  it("has the reasoning of a loop whose beginning its client cut, and of one whose history is stored", async () => {
    engine.behave(chatsOnly({ content: "Blue." }));
    const [question, step, result] = chat({ reasoning_content: "Hm." }).messages as readonly Json[] as [
      Json,
      Json,
      Json,
    ];
    await post(app.base, "chat/completions", { messages: [question] });
    await post(app.base, "chat/completions", { messages: [question, step, result] });
    const second = { ...step, reasoning_content: "More.", tool_calls: [{ ...CALL, id: "t2" }] };
    const cut = [second, { ...result, tool_call_id: "t2" }];
    const all = [question, step, result, ...cut];
    await post(app.base, "chat/completions", { messages: [result, ...cut] });
    expect(messagesOf(engine.requests.at(-1)?.raw)).toEqual(all);
    const stored = { messages: cut, memprefix: { history: "stored" } };
    await post(app.base, "chat/completions", { messages: [question, step, result] }, "stored");
    await post(app.base, "chat/completions", stored, "stored");
    expect(messagesOf(engine.requests.at(-1)?.raw)).toEqual(all);
  });

  it("finds the memories of earlier turns in a history whose thinking its client dropped", async () => {
    const facts = ["Ada likes blue.", "Ada likes red."];
    const source = answeringSource(facts.slice(0, 1));
    const own = await startApp(
      readSettings({
        MEMPREFIX_DATA_DIR: `${app.dataDir}-own`,
        MEMPREFIX_SOURCE: "none",
        MEMPREFIX_UPSTREAM_URL: engine.url,
      }),
      source,
      { log: [], faults: app.faults },
    );
    try {
      const keep = { memprefix: { retention: "keep" } };
      engine.behave(chatsOnly({ content: "Blue.", reasoning_content: "Hm." }));
      const question = { role: "user", content: "Which colour?" };
      const { content } = (await post(own.base, "messages", { max_tokens: 9, ...keep, messages: [question] })) as {
        content: Json[];
      };
      const history = (said: readonly Json[], next: string) => [
        question,
        { role: "assistant", content: said },
        { role: "user", content: next },
      ];
      source.found = facts;
      await post(own.base, "messages", { max_tokens: 9, ...keep, messages: history(content, "Sure?") });
      const bare = content.filter(({ type }) => type === "text");
      const third = [
        ...history(bare, "Sure?"),
        { role: "assistant", content: bare },
        { role: "user", content: "Yes?" },
      ];
      await post(own.base, "messages", { max_tokens: 9, ...keep, messages: third });
      const [, second, last] = engine.requests.map(({ raw }) => messagesOf(raw));
      const asked = (messages: readonly Json[] = []) => messages.filter(({ role }) => role === "user");
      expect(asked(last).slice(0, 2)).toEqual(asked(second));
      for (const fact of facts) expect(JSON.stringify(last).split(`- ${fact}`)).toHaveLength(2);
    } finally {
      await own.close();
    }
  });
});

describe("an engine of chat completions whose responses are continued after a restart", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada likes blue."]);
  const app = servedApp({ source: () => source, upstream: engine });
  let again: StartedApp | undefined;
  afterEach(async () => {
    await again?.close();
    again = undefined;
  });

  it("has its reasoning, and the signatures of its calls", async () => {
    const given = { reasoning: "Look up.", reasoning_details: [DETAIL], tool_calls: [SIGNED_CALL] };
    engine.behave(chatsOnly(given, { finish_reason: "tool_calls" }));
    const { tools } = items();
    const { id } = await post(app.base, "responses", { tools, input: "Which colour?" });
    await vi.waitFor(() => expect(rowCounts(app.database)["responses"]).toBe(1));
    const settings = { MEMPREFIX_DATA_DIR: app.dataDir, MEMPREFIX_SOURCE: "none", MEMPREFIX_UPSTREAM_URL: engine.url };
    again = await startApp(readSettings(settings), source, { log: [], faults: app.faults });
    const input = [{ type: "function_call_output", call_id: "t1", output: "Blue." }];
    await post(again.base, "responses", { tools, input, previous_response_id: id });
    expect(messagesOf(engine.requests.at(-1)?.raw).find(({ role }) => role === "assistant")).toMatchObject(given);
  });
});

describe("OpenAI's own API", () => {
  const engine = openAiEngine();
  const app = servedApp({
    source: () => answeringSource([]),
    upstream: engine,
    environment: { MEMPREFIX_ENGINE_FAMILY: "openai" },
  });

  it.each(MOVED)("gets nothing of $what", async ({ path, body }) => {
    engine.behave(chatsOnly({ content: "Blue." }));
    await post(app.base, path, body);
    expect(Object.keys(messagesOf(engine.requests.at(-1)?.raw).find(({ role }) => role === "assistant") ?? {})).toEqual(
      [...["role", "content", "tool_calls"]],
    );
  });
});

describe.each(["generic", "openai"])("an engine that has /responses, where it had not (%s)", (family) => {
  const engine = openAiEngine();
  const environment = { MEMPREFIX_ENGINE_FAMILY: family };
  const app = servedApp({ source: () => answeringSource([]), upstream: engine, environment });

  it("gets no seal of memprefix's", async () => {
    engine.behave(chatsOnly({ content: "Blue.", reasoning_content: "Hm.", tool_calls: [SIGNED_CALL] }));
    const sealed = { store: false, include: ["reasoning.encrypted_content"], input: "Which colour?" };
    const { output } = (await post(app.base, "responses", sealed)) as { output: readonly Json[] };
    expect(JSON.stringify(output).split("memprefix.reasoning")).toHaveLength(3);
    const settings = {
      ...{ MEMPREFIX_DATA_DIR: app.dataDir, MEMPREFIX_SOURCE: "none", MEMPREFIX_UPSTREAM_URL: engine.url },
      ...environment,
    };
    // Another process, which asks again whether the engine has the route.
    const again = await startApp(readSettings(settings), answeringSource([]), { log: [], faults: app.faults });
    try {
      engine.behave((_request, response) => sendJson(response, 200, responseObject("resp_1", [], {})));
      const bare = output.map(({ content: _content, ...item }) => item);
      const input = [{ role: "user", content: "Which colour?" }, ...bare, { role: "user", content: "Sure?" }];
      await post(again.base, "responses", { input });
      const received = JSON.parse(engine.requests.at(-1)?.raw ?? "") as { input: readonly Json[] };
      const reasoning = received.input.filter(({ type }) => type === "reasoning");
      const kept = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] };
      expect(reasoning).toMatchObject(family === "openai" ? [] : [kept]);
      expect(JSON.stringify(received)).not.toContain("memprefix.reasoning");
    } finally {
      await again.close();
    }
  });
});

describe("Anthropic's API", () => {
  const anthropic = anthropicServer();
  const environment = { MEMPREFIX_UPSTREAM_API: "anthropic" };
  const app = servedApp({ source: () => answeringSource([]), upstream: anthropic, environment });
  const engine = openAiEngine();
  const elsewhere = servedApp({ source: () => answeringSource([]), upstream: engine });
  const signed = { type: "thinking", thinking: "Its own. \u{1F914}", signature: "Eq+/==" };
  const THINKING = { type: "enabled", budget_tokens: 1_024 };
  const unsigned: Readonly<Record<string, Json>> = {
    "no signature": { type: "thinking", thinking: "Hm." },
    "an empty signature": { type: "thinking", thinking: "Hm.", signature: "" },
    "a signature that is none": { type: "thinking", thinking: "Hm.", signature: null },
    "redacted thinking without data": { type: "redacted_thinking", data: "" },
  };
  /** As the API does, with 400 for thinking without a signature. */
  const answered = () =>
    anthropic.behave((response, { body }) => {
      const blocks = body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
      const at = blocks.findIndex(({ type, signature }) => type === "thinking" && !signature);
      if (at === -1) return sendAnthropic(response, 200, EMPTY_MESSAGE);
      const message = `messages.1.content.${at}: Invalid \`signature\` in \`thinking\` block`;
      return sendAnthropic(response, 400, { type: "error", error: { type: "invalid_request_error", message } });
    });
  const said = () => anthropic.calls.at(-1)?.body.messages[1]?.content;

  it.each(Object.entries(unsigned))("gets no block with %s, and its own as it signed it", async (_what, block) => {
    answered();
    await post(app.base, "messages", { ...loop(block, signed), thinking: THINKING });
    expect(said()).toEqual([signed, USE]);
    expect(anthropic.calls.at(-1)?.body).toMatchObject({ thinking: THINKING });
    await post(app.base, "messages", { ...loop(block), thinking: THINKING }, "other");
    expect(said()).toEqual([USE]);
    // There the API would take no call without thinking in front of it.
    expect(anthropic.calls.at(-1)?.body).not.toHaveProperty("thinking");
    // It is asked once what it takes.
    expect(anthropic.calls.length).toBeLessThanOrEqual(3);
  });

  it("gets nothing of what another engine gave, and thinks on where the loop is over", async () => {
    engine.behave(chatsOnly({ reasoning_content: "Hm.", content: null, tool_calls: [SIGNED_CALL] }));
    const { content } = (await post(elsewhere.base, "messages", loop())) as { content: readonly Json[] };
    expect(content.map(({ type }) => type)).toEqual(["thinking", "tool_use", "redacted_thinking"]);
    answered();
    const asked = { ...loop(), thinking: THINKING };
    const [question] = asked.messages;
    const history = [question, { role: "assistant", content }, RESULT, { role: "assistant", content: "Blue." }];
    await post(app.base, "messages", { ...asked, messages: [...history, { role: "user", content: "Sure?" }] });
    expect(said()).toEqual([USE]);
    expect(anthropic.calls.at(-1)?.body).toMatchObject({ thinking: THINKING });
  });

  it("gets no message that was nothing but another's thinking", async () => {
    answered();
    const thought = { role: "assistant", content: [{ type: "thinking", thinking: "Hm.", signature: "" }] };
    const user = (content: string) => ({ role: "user", content });
    await post(app.base, "messages", { max_tokens: 9, messages: [user("Blue?"), thought, user("Well?")] });
    expect(anthropic.calls.at(-1)?.body.messages.map(({ role }) => role)).toEqual(["user", "user"]);
  });

  it.each(MOVED.filter(({ path }) => path !== "messages"))("gets no thinking made of $what", async ({ path, body }) => {
    answered();
    await post(app.base, path, { ...body, thinking: THINKING });
    const own = body["messages"] === undefined ? [] : [{ type: "thinking", thinking: "Hm.", signature: "SIGNED" }];
    expect(said()).toEqual([...own, USE]);
  });
});

function messagesOf(raw = ""): readonly Json[] {
  return (JSON.parse(raw) as { messages: readonly Json[] }).messages;
}
