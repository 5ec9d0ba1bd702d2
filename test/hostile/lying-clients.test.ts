/*
 * Attacked: what is learned of an engine, by clients that make it say what they like. Broke: one chat without a model, to an engine whose
 * error repeats the request, ended the asking for usage for all tenants until the service was started again. Held: clients that ask for
 * their usage themselves are never asked for twice.
 */
import { describe, expect, it } from "vitest";
import type { UpstreamAnswer } from "../../src/engines/upstream/upstream.js";
import { StreamUsage } from "../../src/service/chat/exchange.js";
import { callerOf } from "../http/guards/callers.js";
import { openAiEngine, type Received, sendEvents, sendJson, streamedAnswer } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

describe("an engine whose errors repeat the request", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  const chat = (more: object) => ({
    messages: [{ role: "user", content: "Tea?" }],
    user: "ada",
    stream: true,
    ...more,
  });
  const asks = ({ body }: Received) => body.stream_options?.include_usage === true;

  it("is asked for the usage of the others, whatever one client sends, and by it twice at most", async () => {
    engine.behave((request, response, usage) => {
      if (request.body.model === undefined) return sendJson(response, 400, { error: { message: request.raw } });
      return sendEvents(response, streamedAnswer("Indeed.", request.body.stream_options ? usage : null));
    });
    const [liar, honest] = [callerOf(app, "acme"), callerOf(app, "other")];
    for (let n = 0; n < 3; n++) expect((await liar.send("POST", "/v1/chat/completions", chat({}))).status).toBe(400);
    expect(engine.requests.map(asks)).toEqual([true, false, true, false, true, false]);
    for (const { send } of [honest, liar]) {
      expect((await send("POST", "/v1/chat/completions", chat({ model: "stub-1" }))).status).toBe(200);
      expect(engine.requests.at(-1)?.body.stream_options).toEqual({ include_usage: true });
    }
    expect(engine.requests).toHaveLength(8);
  });

  it("that refuses the second time what it took the first is believed for that tenant and model alone", async () => {
    // What a client's own image server can bring about: the request fails with the field, and succeeds without.
    engine.behave((request, response, usage) => {
      if (request.raw.includes("trick") && request.body.stream_options)
        return sendJson(response, 400, { error: { message: request.raw } });
      return sendEvents(response, streamedAnswer("Indeed.", request.body.stream_options ? usage : null));
    });
    const [liar, honest] = [callerOf(app, "acme"), callerOf(app, "other")];
    const trick = chat({ model: "stub-1", messages: [{ role: "user", content: "trick" }] });
    expect((await liar.send("POST", "/v1/chat/completions", trick)).status).toBe(200);
    expect(engine.requests.map(asks)).toEqual([true, false]);
    await honest.send("POST", "/v1/chat/completions", chat({ model: "stub-1" }));
    await liar.send("POST", "/v1/chat/completions", chat({ model: "stub-2" }));
    expect(engine.requests.slice(2).map(asks)).toEqual([true, true]);
    await liar.send("POST", "/v1/chat/completions", chat({ model: "stub-1" }));
    expect(engine.requests.slice(4).map(asks)).toEqual([false]);
  });
});

describe("asking for the usage", () => {
  const tenant = {};
  /** An engine that refuses the field with `status`, and answers `then` without it. */
  const engineOf = (status: number, then: number) => {
    const sent: object[] = [];
    const send = (body: object): Promise<UpstreamAnswer> => {
      sent.push(body);
      const isRefused = "stream_options" in body;
      async function* bytes() {
        yield Buffer.from(isRefused ? "no stream_options here" : "{}");
      }
      return Promise.resolve({ status: isRefused ? status : then, headers: [], body: bytes() });
    };
    return { sent, send };
  };
  const own = { model: "m", stream: true };

  it("remembers so many models only, and no model's name at length", async () => {
    const asking = new StreamUsage(() => 0);
    const { sent, send } = engineOf(400, 200);
    for (const model of ["first", ...Array.from({ length: 256 }, (_, n) => `${n} ${"x".repeat(1_000)}`)])
      await asking.send(tenant, { ...own, model }, own, send);
    sent.length = 0;
    await asking.send(tenant, { ...own, model: "first" }, own, send);
    await asking.send(tenant, { ...own, model: `255 ${"x".repeat(2_000)}` }, own, send);
    expect(sent).toHaveLength(3);
  });
});
