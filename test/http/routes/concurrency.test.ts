import { describe, expect, it, vi } from "vitest";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { Gate } from "../../gate.js";
import { found, searchingSource } from "../../service/compose/service-fixture.js";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { openAiEngine, sendJson } from "./openai-engine.js";
import { rowCounts } from "./stored-rows.js";

describe("users over HTTP", () => {
  let memory = new Gate();
  let computing = new Gate();
  const engine = openAiEngine();
  const app = servedApp({
    source: () => {
      [memory, computing] = [new Gate(), new Gate()];
      return searchingSource(async ({ scope, query }, signal) => {
        if (scope.userId === "slow") await memory.pass();
        if (signal.aborted) throw new MemorySourceError("test", { kind: "aborted" });
        return found({ [`m-${query}`]: `About ${query}.` });
      });
    },
    upstream: engine,
  });
  const ask = (user: string, query: string) => app.compose({ user_id: user, query, request_id: `${user}-${query}` });

  it("are served while another's memory search hangs, in every way", async () => {
    const order: string[] = [];
    const slow = ask("slow", "first").then(() => order.push("slow"));
    const behind = ask("slow", "second").then(() => order.push("behind"));
    await memory.reached;
    await Promise.all(Array.from({ length: 20 }, (_, n) => ask(`quick-${n % 5}`, `q${n}`)));
    const batch = { requests: [{ user_id: "quick-0", query: "batch", request_id: "in-batch" }] };
    expect((await app.send("POST", "/compose/batch", batch)).status).toBe(200);
    const evicted = await app.send("POST", "/evict", { request_ids: ["quick-0-q0", "quick-1-q1"] });
    expect(JSON.parse(evicted.text)).toMatchObject({ evicted: ["quick-0-q0", "quick-1-q1"] });
    expect((await app.send("DELETE", "/users/quick-2")).status).toBe(200);
    expect(order).toEqual([]);
    memory.open();
    await Promise.all([slow, behind]);
    expect(order).toEqual(["slow", "behind"]);
  });

  it("are answered by the engine while it keeps another waiting", async () => {
    engine.behave(async ({ body, headers }, response) => {
      if (JSON.stringify(body.messages).includes("hangs")) await computing.pass();
      sendJson(response, 200, {
        choices: [{ message: { role: "assistant", content: String(headers["x-request-id"]) } }],
      });
    });
    const chat = (user: string, content: string) =>
      app.send("POST", "/v1/chat/completions", { model: "m", user, messages: [{ role: "user", content }] });
    const hanging = chat("patient", "this hangs");
    await computing.reached;
    const others = await Promise.all(["ada", "bob", "patient"].map((user) => chat(user, "this does not")));
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200]);
    computing.open();
    expect((await hanging).status).toBe(200);
  });

  it("who go away while they wait leave nothing behind, and those behind them get their turn", async () => {
    const first = ask("slow", "first");
    await memory.reached;
    const leaving = new AbortController();
    const left = fetch(`${app.base}/compose`, {
      method: "POST",
      headers: { "content-type": "application/json", connection: "close" },
      body: JSON.stringify({ user_id: "slow", query: "left", request_id: "left" }),
      signal: leaving.signal,
    });
    const refused = expect(left).rejects.toThrow("abort");
    // It has arrived when what came after it has.
    await ask("quick", "meanwhile");
    await vi.waitFor(() => expect(app.memprefix.load.busyUsers).toBe(1));
    leaving.abort();
    await refused;
    // The service has noticed when it has served what was sent after.
    for (let n = 0; n < 5; n++) await ask("quick", `after-${n}`);
    const last = ask("slow", "last");
    memory.open();
    await Promise.all([first, last]);
    expect(rowCounts(app.database)).toMatchObject({ requests: 8, turns: 8 });
    expect(app.faults).toEqual([]);
    expect(app.log.map(({ status }) => status).filter((status) => status !== 200)).toEqual([499]);
    // Asked again, it is answered as if for the first time: with its memories.
    const again = await app.compose({ user_id: "slow", query: "left", request_id: "left" });
    expect(again).toMatchObject({ warnings: [], blocks: [{ memory_id: "m-left" }] });
  });
});

describe("chats at once that take this process longer than the time-out", () => {
  const engine = openAiEngine();
  const app = servedApp({
    source: () => searchingSource(async ({ query }) => found({ [`m-${query}`]: `About ${query}.` })),
    upstream: engine,
    times: { composeTimeoutMs: 100 },
  });

  it("are all composed, later", async () => {
    const long = "The museum opens at nine, and the garden behind it at ten. ".repeat(400);
    for (let round = 0; round < 4; round++) {
      const answers = Array.from({ length: 40 }, (_, at) =>
        sendWith(app, {}, "POST", "/v1/chat/completions", {
          user: `user-${at}`,
          messages: [{ role: "user", content: `${round} ${long}` }],
        }),
      );
      const reasons = (await Promise.all(answers)).map(({ headers }) => headers.get("x-memprefix-not-composed"));
      expect(reasons).toEqual(Array.from({ length: 40 }, () => null));
    }
    expect(app.faults).toEqual([]);
  }, 120_000);
});
