import type { ServerResponse } from "node:http";
import { beforeEach, describe, expect, it } from "vitest";
import { type ClientOptions, createMemprefixClient, MemprefixError } from "../../src/client/index.js";
import { standIn } from "../stand-in.js";

const ASKED = { userId: "ana", query: "Where?" };

describe("a client whose service fails", () => {
  let behave: (response: ServerResponse) => void = () => {};
  let calls = 0;
  let url = "";
  beforeEach(async () => {
    calls = 0;
    url = await standIn((request, response) => {
      calls++;
      request.resume().on("end", () => behave(response));
    });
  });
  const clientOf = (options: Partial<ClientOptions> = {}) => createMemprefixClient({ url: `${url}/`, ...options });
  const json = (status: number, body: unknown) => (response: ServerResponse) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  const problem = { type: "about:blank", title: "Unprocessable", status: 422, detail: "user_id: is missing" };

  it.each<[string, (response: ServerResponse) => void, object]>([
    ["says why", json(422, { ...problem, errors: [{ field: "user_id", message: "is missing" }] }), { status: 422 }],
    ["is another server", json(200, { hello: "world" }), { status: 200, problem: null }],
    ["gives a page", (response) => response.writeHead(502).end("<p>Bad gateway"), { status: 502, problem: null }],
    ["resets the connection", (response) => response.destroy(), { status: null, problem: null }],
    [
      "answers half a body",
      (response) => response.writeHead(200, { "content-length": 50 }).write('{"messages":[', () => response.destroy()),
      { status: null, problem: null },
    ],
    ["hangs", () => {}, { status: null, problem: null }],
  ])("rejects with one class of error where it %s, and asks once", async (how, answer, wanted) => {
    behave = answer;
    const error = await clientOf({ timeoutMs: how === "hangs" ? 200 : 0 })
      .compose(ASKED)
      .catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(MemprefixError);
    expect(error).toMatchObject({ name: "MemprefixError", ...wanted });
    expect(calls).toBe(1);
  });

  it("gives the problem as the service answered it", async () => {
    const answered = { ...problem, errors: [{ field: "memory_budget_tokens", message: "must not be negative" }] };
    behave = json(422, answered);
    await expect(clientOf().compose(ASKED)).rejects.toMatchObject({ problem: answered });
  });

  it("ends with the caller's signal", async () => {
    behave = () => {};
    const why = new Error("no longer wanted");
    const controller = new AbortController();
    setTimeout(() => controller.abort(why), 50);
    await expect(clientOf().compose(ASKED, { signal: controller.signal })).rejects.toBe(why);
    await expect(clientOf().compose(ASKED, { signal: AbortSignal.abort(why) })).rejects.toBe(why);
  });

  it("takes an address only", () => {
    expect(() => createMemprefixClient({ url: "somewhere" })).toThrow(TypeError);
  });
});
