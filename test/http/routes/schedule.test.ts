import { describe, expect, it, vi } from "vitest";
import { problemOf, servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";
import { rowCounts } from "./stored-rows.js";

const request = { user_id: "ada", query: "Tea?", memories: [{ id: "m-tea", memory: "Ada drinks green tea" }] };

describe("a service that orders concurrent prompts", () => {
  const engine = openAiEngine();
  const app = servedApp({
    source: () => answeringSource(["Ada drinks green tea"]),
    upstream: engine,
    environment: { MEMSTEM_SCHEDULE_MS: "1000" },
  });
  const metric = async (name: string) => {
    const { text } = await app.send("GET", "/metrics");
    return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  };

  it("answers all of them, and counts what they waited", async () => {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) => app.compose({ ...request, request_id: `r-${n}`, schedule_ms: 50 })),
    );
    expect(new Set(answers.map(({ request_id }) => request_id)).size).toBe(6);
    expect(await metric("memstem_schedule_wait_seconds_count")).toBe(5);
    expect(await metric("memstem_schedule_wait_seconds_sum")).toBeGreaterThan(0);
    expect(await metric("memstem_schedule_waiting")).toBe(0);
  });

  it("composes chats that wait, with their memories", async () => {
    const chats = Array.from({ length: 4 }, (_, n) => clientOf(app).chat.completions.create(ask(`Tea ${n}?`)));
    await Promise.all(chats);
    expect(engine.requests).toHaveLength(4);
    for (const { body } of engine.requests) expect(JSON.stringify(body.messages)).toContain("Ada drinks green tea");
  });

  it("composes nothing for a client that is gone", async () => {
    await app.compose(request);
    const caller = new AbortController();
    const gone = fetch(`${app.base}/compose`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
      signal: caller.signal,
    });
    await vi.waitFor(() => expect(app.memstem.load.scheduling).toBe(1));
    caller.abort();
    await expect(gone).rejects.toThrow();
    await vi.waitFor(() => expect(app.memstem.load.scheduling).toBe(0));
    expect(rowCounts(app.database)).toMatchObject({ requests: 1 });
  });

  it("keeps no repeated request waiting", async () => {
    const asked = { ...request, request_id: "r-1" };
    const first = await app.compose(asked);
    expect(await app.compose(asked)).toEqual(first);
    expect(await metric("memstem_schedule_wait_seconds_count")).toBe(0);
  });

  it("refuses a wait that is none", async () => {
    const exchange = await app.send("POST", "/compose", { ...request, schedule_ms: -1 });
    expect(problemOf(exchange).errors?.[0]?.field).toBe("schedule_ms");
  });
});
