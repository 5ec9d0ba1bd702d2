import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { KNOWN_MS } from "../guards/callers.js";
import { problemOf, servedApp } from "../server/served-app.js";

const memories = [{ id: "m-1", memory: "Ada hides the key" }];

describe("a store that fails", () => {
  const app = servedApp();

  it.each([
    ["GET", "/healthz", undefined],
    ["POST", "/compose", { user_id: "ada", query: "Where?", memories }],
    ["POST", "/compose", { user_id: "ada", query: "Where?", memories, request_id: "r-1" }],
    ["DELETE", "/users/ada/memories/m-1", undefined],
  ])("makes %s %s a problem that says nothing about the inside", async (method, path, body) => {
    await app.compose({ user_id: "ada", query: "Where?", memories });
    await app.memprefix.close();
    await setTimeout(KNOWN_MS);
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
