import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type ClientOptions,
  createMemprefixClient,
  InvalidRequestError,
  MemprefixHttpError,
} from "../../src/client/index.js";
import { retryAfterMs, retryDelayMs } from "../../src/client/sending.js";
import { failingService, half, hang, json, page, problem, reset } from "./failing-service.js";

const ANSWER = json(200, { request_id: "r-1", messages: [{ role: "user", content: "Where?" }] });
const ASKED = { userId: "ana", query: "Where?" };

describe("a client whose service fails", () => {
  const service = failingService();
  const clientOf = (options: Partial<ClientOptions> = {}) => createMemprefixClient({ url: service.url, ...options });
  const ids = () =>
    service.bodies.map((body) => z.object({ request_id: z.string() }).parse(JSON.parse(body)).request_id);

  it.each([
    ["resets the connection", reset],
    ["answers half a body", half('{"request_id":')],
    ["answers a part of JSON", json(200, undefined)],
    ["is stopping", problem(503, "the service is stopping", { "retry-after": "0" })],
    ["has no time", problem(429, "too many", { "retry-after": "0" })],
    ["has no server behind its gateway", page(502)],
  ])("tries again where it %s, under the same request id", async (_what, failure) => {
    service.behave(failure, failure, ANSWER);
    expect(await clientOf().compose(ASKED)).toMatchObject({ requestId: "r-1" });
    expect(service.bodies).toHaveLength(3);
    expect(new Set(ids()).size).toBe(1);
  });

  it("waits for as long as it is told", async () => {
    service.behave(problem(503, "busy", { "retry-after": "1" }), ANSWER);
    await clientOf().compose(ASKED);
    const [first = 0, second = 0] = service.times;
    expect(second - first).toBeGreaterThanOrEqual(990);
  });

  it("gives up after so many tries, or where the wait is too long, and says what was last", async () => {
    service.behave(reset);
    await expect(clientOf({ retries: 1 }).compose(ASKED)).rejects.toMatchObject({
      name: "MemprefixConnectionError",
      message: expect.stringMatching(/^POST \/compose had no whole answer: /),
      cause: expect.any(Error),
    });
    expect(service.bodies).toHaveLength(2);
    service.behave(problem(503, "damaged", { "retry-after": "300" }));
    await expect(clientOf().compose(ASKED)).rejects.toMatchObject({
      name: "MemprefixHttpError",
      status: 503,
      retryAfterMs: 300_000,
      problem: { detail: "damaged" },
    });
    expect(service.bodies).toHaveLength(3);
  });

  it("tries again after the time-out of a try, and names the time-out at last", async () => {
    service.behave(hang, ANSWER);
    expect(await clientOf({ timeoutMs: 200 }).compose(ASKED)).toMatchObject({ requestId: "r-1" });
    service.behave(hang);
    await expect(clientOf().compose(ASKED, { timeoutMs: 50, retries: 0 })).rejects.toMatchObject({
      name: "MemprefixTimeoutError",
      afterMs: 50,
    });
    service.behave((response) => response.writeHead(200, { "content-type": "application/json" }).write("{"));
    await expect(clientOf().compose(ASKED, { timeoutMs: 50, retries: 0 })).rejects.toMatchObject({
      name: "MemprefixTimeoutError",
    });
  });

  it("ends with the caller's signal, during a try and between two", async () => {
    service.behave(hang);
    const why = new Error("no longer wanted");
    const soon = () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(why), 50);
      return controller.signal;
    };
    await expect(clientOf().compose(ASKED, { signal: soon() })).rejects.toBe(why);
    service.behave(problem(503, "busy", { "retry-after": "30" }));
    await expect(clientOf().compose(ASKED, { signal: soon() })).rejects.toBe(why);
    await expect(clientOf().compose(ASKED, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
    expect(service.bodies).toHaveLength(2);
  });

  it("adds nothing twice: only a rejection is tried again", async () => {
    const add = () => clientOf().add({ userId: "ana", memories: ["a"] });
    for (const [at, failure] of [reset, problem(503, "busy"), page(502)].entries()) {
      service.behave(failure);
      await expect(add()).rejects.toThrow();
      expect(service.bodies).toHaveLength(at + 1);
    }
    service.behave(hang, hang, hang, problem(429, "too many", { "retry-after": "0" }), json(201, { results: [] }));
    expect(await add()).toEqual([]);
    expect(service.bodies).toHaveLength(5);
  });

  it.each([
    ["a page", page(200), /was answered 200 \(text\/html\), but not by memprefix/],
    ["another server's JSON", json(200, { hello: "world" }), /but not by memprefix/],
    ["JSON that is no object", json(200, null), /but not by memprefix/],
    ["a page that says no", page(404), /was answered 404 \(text\/html\)/],
  ])("takes %s for no answer, and does not ask again", async (_what, answer, says) => {
    service.behave(answer);
    const error = await clientOf()
      .compose(ASKED)
      .catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(MemprefixHttpError);
    expect(error).toMatchObject({ message: expect.stringMatching(says), problem: null });
    expect(service.bodies).toHaveLength(1);
  });

  it.each([
    [409, "DeletedMeanwhileError"],
    [501, "MemorySourceError"],
    [401, "MemprefixHttpError"],
    [507, "MemprefixHttpError"],
    [500, "MemprefixHttpError"],
  ])("throws for status %i a %s", async (status, name) => {
    service.behave(problem(status, "So."));
    await expect(clientOf({ retries: 0 }).forgetUser({ userId: "ana" })).rejects.toMatchObject({
      name,
      status,
      problem: { title: "Title", detail: "So." },
    });
    expect(service.bodies).toHaveLength(1);
  });

  it("says that a batch's lines ended too early", async () => {
    const line = `${JSON.stringify({ progress: { read: 1, found: 0, composed: 0, failed: 0 } })}\n`;
    const lines = async (options: Partial<ClientOptions> = {}) => {
      const read: unknown[] = [];
      for await (const one of clientOf(options).composeLines([ASKED])) read.push(one);
      return read;
    };
    service.behave((response) => response.writeHead(200, { "content-type": "application/x-ndjson" }).end(line));
    await expect(lines()).rejects.toMatchObject({ name: "MemprefixConnectionError" });
    service.behave((response) => response.writeHead(200).end("<html>"));
    await expect(lines()).rejects.toMatchObject({ name: "MemprefixConnectionError" });
    service.behave((response) => response.writeHead(200).write(line));
    await expect(lines({ timeoutMs: 100 })).rejects.toMatchObject({ name: "MemprefixTimeoutError" });
    service.bodies satisfies readonly string[];
    service.behave(problem(503, "busy", { "retry-after": "0" }));
    await expect(lines()).rejects.toMatchObject({ status: 503 });
    expect(service.bodies).toHaveLength(6);
  });

  it("finishes its calls when it is closed, and takes no more", async () => {
    service.behave((response) => setTimeout(() => ANSWER(response, "", response.req), 50));
    const client = clientOf();
    const answer = client.compose(ASKED);
    await client.close();
    expect(await Promise.race([answer, new Promise((late) => setImmediate(late))])).toMatchObject({ requestId: "r-1" });
    await expect(client.health()).rejects.toMatchObject({ name: "ClosedError" });
    await expect(client.composeLines([]).next()).rejects.toMatchObject({ name: "ClosedError" });
  });

  it("says of a service that is stopping what it says itself", async () => {
    service.behave(json(503, { status: "stopping", version: "1.2.3", source: null }));
    expect(await clientOf().health()).toEqual({ status: "stopping", version: "1.2.3", source: null });
  });

  it("sends its headers, and uses the fetch that it is given", async () => {
    const seen: unknown[] = [];
    service.behave((response, body, request) => {
      const { authorization, "x-gateway": gateway, "content-type": type } = request.headers;
      seen.push([request.url, authorization, gateway, type]);
      ANSWER(response, body, request);
    });
    let calls = 0;
    const counting: typeof fetch = (...given) => {
      calls += 1;
      return fetch(...given);
    };
    const url = `${service.url}/memprefix/`;
    await createMemprefixClient({ url, apiKey: "mst_1", headers: { "x-gateway": "g" }, fetch: counting }).compose(
      ASKED,
    );
    expect(seen).toEqual([["/memprefix/compose", "Bearer mst_1", "g", "application/json"]]);
    expect(calls).toBe(1);
  });
});

describe("a client's options", () => {
  it.each<[string, object]>([
    ["url", { url: "127.0.0.1:4600" }],
    ["url", { url: "ftp://127.0.0.1" }],
    ["url", { url: "http://ana:secret@127.0.0.1" }],
    ["url", { url: "http://127.0.0.1/?a=b" }],
    ["url", {}],
    ["apiKey", { url: "http://127.0.0.1", apiKey: "a\nb" }],
    ["headers", { url: "http://127.0.0.1", headers: { "a b": "c" } }],
    ["timeoutMs", { url: "http://127.0.0.1", timeoutMs: -1 }],
    ["retries", { url: "http://127.0.0.1", retries: 1.5 }],
    ["apikey", { url: "http://127.0.0.1", apikey: "k" }],
  ])("are checked: %s", (field, options) => {
    const make = () => createMemprefixClient(options as ClientOptions);
    expect(make).toThrow(InvalidRequestError);
    expect(make).toThrow(expect.objectContaining({ issues: [expect.objectContaining({ field })], status: null }));
  });
});

describe("the waits between tries", () => {
  it("double up to a bound, at random, and come after what the service asks for", () => {
    expect([0, 1, 2, 9].map((failed) => retryDelayMs(failed, null, 1))).toEqual([250, 500, 1_000, 8_000]);
    expect([0, 0.5, 1].map((random) => retryDelayMs(2, null, random))).toEqual([500, 750, 1_000]);
    expect([0, 1].map((random) => retryDelayMs(0, 3_000, random))).toEqual([3_000, 3_125]);
  });

  it("are read as seconds or as a date", () => {
    const now = Date.parse("2026-05-01T10:00:00Z");
    expect(retryAfterMs("7", now)).toBe(7_000);
    expect(retryAfterMs("Fri, 01 May 2026 10:00:05 GMT", now)).toBe(5_000);
    expect(retryAfterMs("Fri, 01 May 2026 09:00:05 GMT", now)).toBe(0);
    expect([retryAfterMs(null, now), retryAfterMs("soon", now)]).toEqual([null, null]);
  });
});
