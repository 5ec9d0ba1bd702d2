import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";

const request = { user_id: "ada", query: "Tea?", memories: [{ id: "m-tea", memory: "Ada drinks green tea" }] };

describe("POST /compose with workers", () => {
  const app = servedApp();

  it("answers the worker and its affinity headers, and nothing of them without workers", async () => {
    const routed = await app.compose({ ...request, request_id: "r-1", workers: ["gpu-0", "gpu-1"] });
    expect(routed.worker).toBe("gpu-0");
    expect(routed.engine.headers).toEqual({
      "x-request-id": "r-1",
      "x-smg-routing-key": "gpu-0",
      "x-dynamo-session-id": "gpu-0",
    });
    const plain = await app.compose({ ...request, request_id: "r-2" });
    expect(plain).not.toHaveProperty("worker");
    expect(plain.engine.headers).toEqual({ "x-request-id": "r-2" });
  });
});

describe("a chat where workers are configured", () => {
  const engine = openAiEngine();
  const app = servedApp({
    source: () => answeringSource(["Ada drinks green tea"]),
    upstream: engine,
    environment: { MEMPREFIX_ROUTER: "workers:gpu-0, gpu-1", MEMPREFIX_WARM_UP: "on" },
  });

  it("goes to the engine with the name of its worker, which the answer names too", async () => {
    const workerOf = async (user: string, headers: Readonly<Record<string, string>> = {}) => {
      const client = clientOf(app, { "x-memprefix-user": user, ...headers });
      const { response } = await client.chat.completions.create(ask("Which tea?")).withResponse();
      return [response.headers.get("x-memprefix-worker"), engine.requests.at(-1)?.headers["x-smg-routing-key"]];
    };
    expect(await workerOf("ada")).toEqual(["gpu-0", "gpu-0"]);
    expect(await workerOf("bo")).toEqual(["gpu-1", "gpu-1"]);
    expect(await workerOf("ada")).toEqual(["gpu-0", "gpu-0"]);
    // A client that routes its requests itself does.
    expect(await workerOf("ada", { "x-smg-routing-key": "mine" })).toEqual(["gpu-0", "mine"]);
  });
});
