import type { ServerResponse } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { streamFixture, usageFixture } from "../../engines/upstream/fixture.js";
import { type ServedApp, servedApp } from "../server/served-app.js";
import { anthropicServer, sendAnthropic, streamAnthropic } from "./anthropic-server.js";
import { clientOf } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";
import { openAiEngine, openEvents, sendJson } from "./openai-engine.js";
import { eventsText, outputMessage, responseEvents, responseObject, usageOf } from "./responses-engine.js";

const TRIP = { "x-memstem-user": "ada", "x-memstem-conversation": "trip" };
const MISS = {
  type: "cache_miss",
  reason: "tools_changed",
  comparison_reusable_tokens: 1280,
  cache_missed_tokens: 900,
};

/** A response, read from its stream where it is one. */
async function finished(given: unknown): Promise<unknown> {
  if (typeof given !== "object" || given === null || !(Symbol.asyncIterator in given)) return given;
  let last: unknown = null;
  for await (const event of given as AsyncIterable<{ readonly response?: unknown }>) last = event.response ?? last;
  return last;
}

/** The explanation of a request, once its report is stored. */
async function explained(app: ServedApp, id: string | null) {
  return vi.waitFor(async () => {
    const { text } = await app.send("GET", `/requests/${id}/explain?user_id=ada`);
    const found = JSON.parse(text) as { readonly provider: object | null; readonly explanation: readonly string[] };
    expect(found.provider).not.toBeNull();
    return found;
  });
}

describe("OpenAI's cache diagnostics, with MEMSTEM_CACHE_DIAGNOSTICS=on", () => {
  const engine = openAiEngine();
  const app = servedApp({
    upstream: engine,
    environment: { MEMSTEM_ENGINE_FAMILY: "openai-breakpoints", MEMSTEM_CACHE_DIAGNOSTICS: "on" },
  });
  const answers = () => {
    let turn = 0;
    engine.behave(({ raw }, response: ServerResponse) => {
      const { prompt_cache_options: options, stream } = JSON.parse(raw) as {
        prompt_cache_options?: { comparison_response_id?: string };
        stream?: boolean;
      };
      const item = outputMessage(`msg_${turn}`, "Indeed.");
      const diagnosis = options?.comparison_response_id === undefined ? {} : { prompt_cache_diagnostics: MISS };
      const object = responseObject(`resp_${turn++}`, [item], usageOf(1300, 380), diagnosis);
      if (stream !== true) return sendJson(response, 200, object);
      openEvents(response);
      response.end(eventsText(responseEvents(object, item)));
    });
  };
  const asked = (at: number) =>
    JSON.parse(engine.requests[at]?.raw ?? "{}") as {
      readonly prompt_cache_options?: Readonly<Record<string, unknown>>;
    };
  const create = (headers: Record<string, string>, fields: object = {}) =>
    clientOf(app, headers)
      .responses.create({ model: "m", input: "Which tea?", ...fields } as never)
      .withResponse();

  it.each([[{}], [{ stream: true }]])("are asked for from the second request on, and explained: %o", async (fields) => {
    answers();
    const first = await create(TRIP, fields);
    await finished(first.data);
    const second = await create(TRIP, fields);
    expect(await finished(second.data)).toMatchObject({ prompt_cache_diagnostics: MISS });
    expect(asked(0).prompt_cache_options ?? {}).not.toHaveProperty("comparison_response_id");
    expect(asked(1).prompt_cache_options).toMatchObject({ comparison_response_id: "resp_0" });
    const before = first.response.headers.get("x-memstem-request-id");
    const { provider, explanation } = await explained(app, second.response.headers.get("x-memstem-request-id"));
    expect(provider).toEqual({
      provider: "openai",
      outcome: "miss",
      reason: "tools_changed",
      missed_tokens: 900,
      reusable_tokens: 1280,
      compared_with: before,
    });
    expect(explanation).toContain(
      `OpenAI, comparing it with request ${before}, names tools_changed: 900 tokens of 1,280 reusable tokens were not reused.`,
    );
  });

  it("keep what the client asks for itself", async () => {
    answers();
    await create(TRIP);
    const options = { ttl: "30m", comparison_response_id: "resp_of_mine" };
    const { response } = await create(TRIP, { prompt_cache_options: options });
    expect(asked(1).prompt_cache_options).toEqual(options);
    const { provider } = await explained(app, response.headers.get("x-memstem-request-id"));
    expect(provider).toMatchObject({ outcome: "miss", compared_with: null });
    await create(TRIP, { prompt_cache_options: { ttl: "30m" } });
    expect(asked(2).prompt_cache_options).toEqual({ ttl: "30m", comparison_response_id: "resp_1" });
  });

  it("compare with the response that is continued, which need not be the newest", async () => {
    answers();
    const user = { "x-memstem-user": "ada" };
    await create(user);
    await create(user, { previous_response_id: "resp_0" });
    await create(user, { previous_response_id: "resp_0" });
    expect([1, 2].map((at) => asked(at).prompt_cache_options?.["comparison_response_id"])).toEqual([
      "resp_0",
      "resp_0",
    ]);
  });

  it("compare no single prompts, no other conversation and no other user, and ask nothing of chats", async () => {
    answers();
    const others = [
      { "x-memstem-user": "bob", "x-memstem-conversation": "trip" },
      { ...TRIP, "x-memstem-conversation": "work" },
    ];
    for (const headers of [TRIP, ...others]) await create(headers);
    await create({ "x-memstem-user": "ada" }, { store: false });
    await create({ ...TRIP, "x-memstem-bypass": "true" });
    await clientOf(app, TRIP).chat.completions.create({ model: "m", messages: [{ role: "user", content: "?" }] });
    for (let at = 0; at < 6; at++)
      expect(asked(at).prompt_cache_options ?? {}).not.toHaveProperty("comparison_response_id");
  });
});

describe("OpenAI's cache diagnostics without the setting", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMSTEM_ENGINE_FAMILY: "openai-breakpoints" } });

  it("are read where the client asks, and not asked for", async () => {
    const object = responseObject("resp_0", [outputMessage("msg_0", "Indeed.")], usageOf(1300, 380), {
      prompt_cache_diagnostics: MISS,
    });
    engine.behave((_, response) => sendJson(response, 200, object));
    const client = clientOf(app, TRIP);
    await client.responses.create({ model: "m", input: "Which tea?" });
    const { data, response } = await client.responses.create({ model: "m", input: "Which tea?" }).withResponse();
    expect(data).toMatchObject({ prompt_cache_diagnostics: MISS });
    expect(engine.requests[1]?.raw).not.toContain("comparison_response_id");
    const { provider } = await explained(app, response.headers.get("x-memstem-request-id"));
    expect(provider).toMatchObject({ reason: "tools_changed", compared_with: null });
  });
});

describe("Anthropic's cache diagnostics, with MEMSTEM_CACHE_DIAGNOSTICS=on", () => {
  const server = anthropicServer();
  const app = servedApp({
    upstream: server,
    environment: { MEMSTEM_UPSTREAM_API: "anthropic", MEMSTEM_CACHE_DIAGNOSTICS: "on" },
  });
  const create = (fields: object = {}) =>
    messagesClientOf(app, TRIP)
      .messages.create({
        model: "claude-opus-4-8",
        max_tokens: 9,
        messages: [{ role: "user", content: "Which tea?" }],
        ...fields,
      } as never)
      .withResponse();
  const answers = () => {
    let turn = 0;
    server.behave((response, { body }) => {
      const previous = (body["diagnostics"] as { previous_message_id?: string | null } | undefined)
        ?.previous_message_id;
      const diagnostics =
        previous == null ? null : { cache_miss_reason: { type: "system_changed", cache_missed_input_tokens: 12 } };
      sendAnthropic(response, 200, {
        ...(usageFixture("anthropic-message").answer as object),
        id: `msg_${turn++}`,
        diagnostics,
      });
    });
  };

  it("are asked for with every request of a conversation, and explained", async () => {
    answers();
    const first = await create();
    const second = await create();
    expect(server.calls.map(({ body }) => body["diagnostics"])).toEqual([
      { previous_message_id: null },
      { previous_message_id: "msg_0" },
    ]);
    expect(second.data).toMatchObject({ diagnostics: { cache_miss_reason: { type: "system_changed" } } });
    const { provider } = await explained(app, second.response.headers.get("x-memstem-request-id"));
    expect(provider).toMatchObject({
      provider: "anthropic",
      outcome: "miss",
      reason: "system_changed",
      missed_tokens: 12,
      compared_with: first.response.headers.get("x-memstem-request-id"),
    });
  });

  it("are read from a stream's first event", async () => {
    const { events } = streamFixture("anthropic-stream");
    const diagnostics = { cache_miss_reason: { type: "messages_changed", cache_missed_input_tokens: 7 } };
    const begun = (event: unknown) => {
      const { type, message } = event as { readonly type: string; readonly message?: object };
      return type === "message_start" ? { type, message: { ...message, diagnostics } } : event;
    };
    server.behave((response) => streamAnthropic(response, events.map(begun)));
    const { data, response } = await create({ stream: true, diagnostics: { previous_message_id: "msg_of_mine" } });
    for await (const _ of data as unknown as AsyncIterable<unknown>);
    const { provider } = await explained(app, response.headers.get("x-memstem-request-id"));
    expect(provider).toMatchObject({
      outcome: "miss",
      reason: "messages_changed",
      missed_tokens: 7,
      compared_with: null,
    });
  });

  it("keep what the client asks for itself", async () => {
    answers();
    await create({ diagnostics: { previous_message_id: "msg_of_mine" } });
    expect(server.calls[0]?.body["diagnostics"]).toEqual({ previous_message_id: "msg_of_mine" });
  });
});
