import { describe, expect, it } from "vitest";
import { health } from "../../../src/http/contracts/health-contract.js";
import { answeringSource } from "../routes/answering-source.js";
import { problemOf, servedApp } from "../server/served-app.js";

const memories = [{ id: "m-1", memory: "Ada hides the key" }];

describe("GET /healthz", () => {
  const app = servedApp({ source: () => answeringSource([]) });

  it("names the version and the memory source", async () => {
    const exchange = await app.send("GET", "/healthz");
    expect(exchange).toMatchObject({ status: 200, contentType: "application/json" });
    expect(health.strict().parse(JSON.parse(exchange.text))).toEqual({
      status: "ok",
      version: "1.2.3",
      source: "answering",
    });
  });
});

describe("a service without a memory source", () => {
  const app = servedApp();

  it("says so", async () => {
    expect(JSON.parse((await app.send("GET", "/healthz")).text)).toMatchObject({ source: null });
  });
});

describe("a store that fails", () => {
  const app = servedApp();

  it.each([
    ["GET", "/healthz", undefined],
    ["POST", "/compose", { user_id: "ada", query: "Where?", memories }],
    ["POST", "/compose", { user_id: "ada", query: "Where?", memories, request_id: "r-1" }],
    ["POST", "/evict", { request_ids: ["r-1"] }],
    ["POST", "/feedback", { user_id: "ada", request_id: "r-1" }],
    ["GET", "/users/ada/index", undefined],
    ["DELETE", "/users/ada", undefined],
    ["DELETE", "/users/ada/memories/m-1", undefined],
  ])("makes %s %s a problem that says nothing about the inside", async (method, path, body) => {
    await app.compose({ user_id: "ada", query: "Where?", memories });
    await app.memprefix.close();
    const exchange = await app.send(method, path, body);
    expect(problemOf(exchange)).toEqual({
      type: "about:blank",
      title: "Internal error",
      status: 500,
      detail: "the request could not be served; the log says why",
    });
    expect(app.faults).toMatchObject([{ message: expect.stringMatching(/database connection is not open/) }]);
    expect(app.log.at(-1)).toMatchObject({ method, status: 500 });
    // The process is none that a restart would help.
    expect((await app.send("GET", "/livez")).status).toBe(200);
  });
});
