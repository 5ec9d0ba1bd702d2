import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { withExactNumbers } from "../../../src/core/text/json.js";
import { embeddedUpstream, type FetchHandler } from "../../../src/engines/embedded/embedded-openai.js";
import type { UpstreamCall } from "../../../src/engines/upstream/upstream.js";

const CALL: UpstreamCall = {
  method: "POST",
  path: "chat/completions",
  query: "?a=1",
  headers: [
    ["x-request-id", "r"],
    ["host", "memprefix"],
    ["x-memprefix-user", "ada"],
  ],
  body: "{}",
};
const never = new AbortController().signal;

describe("the engine inside as an upstream", () => {
  it("gets the call, without what is the connection's or memprefix's, and its answer goes back", async () => {
    const handler: FetchHandler = async (request) => {
      const headers = Object.fromEntries(request.headers);
      return Response.json({ url: request.url, headers, body: await request.text() }, { status: 429 });
    };
    const { status, headers, body } = await embeddedUpstream(handler).send(CALL, never);
    expect([status, new Map(headers).get("content-type")]).toEqual([429, "application/json"]);
    expect(JSON.parse(await text(body))).toMatchObject({
      url: "http://engine.invalid/v1/chat/completions?a=1",
      headers: { "x-request-id": "r" },
      body: "{}",
    });
  });

  it("hands on no header that is memprefix's", async () => {
    const handler: FetchHandler = async (request) => Response.json([...request.headers.keys()]);
    const { body } = await embeddedUpstream(handler).send({ ...CALL, method: "GET", body: null }, never);
    expect(JSON.parse(await text(body))).toEqual(["x-request-id"]);
  });

  it("gets numbers with all their digits", async () => {
    const given = '{"seed":12345678901234567890}';
    const handler: FetchHandler = async (request) => new Response(await request.text());
    const { body } = await embeddedUpstream(handler).send({ ...CALL, body: withExactNumbers(given) }, never);
    expect(await text(body)).toBe(given);
  });

  it("fails as an upstream does where the caller is gone, before or during the answer", async () => {
    const leaving = new AbortController();
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        leaving.signal.addEventListener("abort", () => controller.error(leaving.signal.reason));
      },
    });
    const upstream = embeddedUpstream(async (request) => {
      request.signal.throwIfAborted();
      return new Response(stream);
    });
    const { body } = await upstream.send(CALL, leaving.signal);
    const reading = text(body);
    leaving.abort();
    await expect(reading).rejects.toMatchObject({ name: "UpstreamError", failure: { kind: "aborted" } });
    await expect(upstream.send(CALL, leaving.signal)).rejects.toMatchObject({ failure: { kind: "aborted" } });
  });

  it("fails as an upstream does where the handler does, without what it says", async () => {
    const upstream = embeddedUpstream(() => Promise.reject(new Error("a secret")));
    await expect(upstream.send(CALL, never)).rejects.toMatchObject({ failure: { kind: "broken", cause: "Error" } });
  });
});
