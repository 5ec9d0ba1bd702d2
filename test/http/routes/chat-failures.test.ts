import OpenAI from "openai";
import { describe, expect, it, vi } from "vitest";
import type { UserId } from "../../../src/core/index.js";
import { openAiProblemSchema } from "../../../src/http/problems/problem.js";
import { storedCounts } from "../../stored-counts.js";
import { sendWith } from "../guards/callers.js";
import { HeldTimers } from "../server/held-timers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, errorOf } from "./chat-client.js";
import { openAiEngine, sendJson } from "./openai-engine.js";

const TEA = "Ada drinks green tea";

describe("a chat that fails", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const timers = new HeldTimers();
  const app = servedApp({
    source: () => source,
    upstream: engine,
    times: { after: timers.after, idleMs: 2_001, timeoutMs: 2_000 },
  });
  const liveRequests = async (user = "ada") => storedCounts(await app.memprefix.exportUser(user as UserId)).live;

  it.each([
    [400, OpenAI.BadRequestError],
    [429, OpenAI.RateLimitError],
    [500, OpenAI.InternalServerError],
  ])(
    "in the engine with %i is the engine's own error, with its headers, and nothing is expected of it",
    async (status, type) => {
      const body = { error: { message: "Says the engine.", type: "its_type", param: "model", code: "its_code" } };
      engine.behave((_request, response) => sendJson(response, status, body, { "retry-after": "7" }));
      for (const stream of [false, true]) {
        const error = await errorOf(clientOf(app).chat.completions.create({ ...ask("Which tea?"), stream }));
        expect(error).toBeInstanceOf(type);
        expect(error).toMatchObject({ status, error: body.error, code: "its_code", requestID: "req_engine" });
        expect(error.headers?.get("retry-after")).toBe("7");
        expect(error.headers?.get("x-memprefix-error-origin")).toBe("upstream");
      }
      await vi.waitFor(async () => expect(await liveRequests()).toEqual([]));
      expect(app.faults).toEqual([]);
    },
  );

  it("takes nothing from another user whose request has the same name", async () => {
    const named = (user_id: string) =>
      app.send("POST", "/v1/chat/completions", { ...ask("Which tea?"), memprefix: { user_id, request_id: "same" } });
    await named("ada");
    engine.behave((_request, response) => sendJson(response, 500, {}));
    expect((await named("bo")).status).toBe(500);
    expect(await liveRequests("bo")).toEqual([]);
    expect(await liveRequests()).toEqual(["same"]);
  });

  it("because the engine is not there says whose fault that is", async () => {
    const name = engine.url;
    await engine.close();
    const error = await errorOf(clientOf(app).chat.completions.create(ask("Which tea?")));
    expect(error).toMatchObject({ status: 502, code: "upstream_unreachable", type: "upstream_error" });
    expect(error.message).toBe(`502 the upstream engine at ${name} could not be reached: ECONNREFUSED`);
    expect(error.headers?.get("x-memprefix-error-origin")).toBe("upstream");
    await vi.waitFor(async () => expect(await liveRequests()).toEqual([]));
    expect(await errorOf(clientOf(app).models.list())).toMatchObject({ status: 502 });
    expect(app.faults).toEqual([]);
  });

  it.each([
    [
      "a prefilled answer",
      [
        { role: "user", content: "Which?" },
        { role: "assistant", content: "The" },
      ],
    ],
    ["a role of the engine's own", [{ role: "critic", content: "Which?" }]],
    ["no messages", []],
    ["messages that are none", "Which?"],
  ])("to be composed, with %s, goes to the engine as it came", async (_what, messages) => {
    engine.behave((_request, response) => sendJson(response, 200, { fine: true }));
    const body = { model: "stub-1", messages, user: "ada" };
    const { text, headers } = await sendWith(app, {}, "POST", "/v1/chat/completions", body);
    expect(JSON.parse(text)).toEqual({ fine: true });
    expect(headers.get("x-memprefix-warnings")).toBe("not_composed");
    expect(JSON.parse(engine.requests[0]?.raw ?? "")).toEqual(body);
  });

  it.each([
    [{ memprefix: { user_id: "ada", nope: 1 } }, {}, 422, "memprefix.nope"],
    [{ memprefix: { user_id: "ada", memory_budget_ratio: 0.9 } }, {}, 422, "memprefix.memory_budget_ratio"],
    [{ memprefix: { user_id: "ada", top_k: 0 } }, {}, 422, "memprefix.top_k"],
    [{ memprefix: { user_id: "bo" } }, { "x-memprefix-user": "ada" }, 422, "memprefix.user_id"],
    [
      { memprefix: { user_id: "ada", conversation_id: "c" } },
      { "x-memprefix-conversation": "d" },
      422,
      "memprefix.conversation_id",
    ],
    [{ memprefix: "ada" }, {}, 422, "memprefix"],
    [{ user: " " }, {}, 422, "user"],
    [{}, { "x-memprefix-user": "Ad\u00e4" }, 422, "x-memprefix-user"],
    ["{", {}, 400, "body"],
    [`"${"x".repeat(33 * 1024 * 1024)}"`, {}, 413, "body"],
  ])("because memprefix cannot read it (%#) names what is wrong", async (given, headers, status, param) => {
    const body = typeof given === "string" ? given : { ...ask("Which tea?"), ...given };
    const response = await sendWith(app, headers, "POST", "/v1/chat/completions", body);
    const json: unknown = JSON.parse(response.text);
    expect(openAiProblemSchema.parse(json)).toEqual(json);
    expect(json).toMatchObject({ status, error: { param, code: null, type: "invalid_request_error" } });
    expect(response.status).toBe(status);
    expect(engine.requests).toEqual([]);
  });
});

describe("without an engine", () => {
  const app = servedApp();

  it("the routes say which setting to set", async () => {
    const client = clientOf(app);
    for (const call of [() => client.chat.completions.create(ask("Which tea?")), () => client.models.list()]) {
      const message = expect.stringContaining("MEMPREFIX_UPSTREAM_URL");
      expect(await errorOf(call())).toMatchObject({ status: 501, message });
    }
  });
});
