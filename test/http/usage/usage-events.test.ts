import { describe, expect, it } from "vitest";
import { createMemstemClient, type UsageEvent } from "../../../src/client/index.js";
import { MAX_LISTENERS } from "../../../src/service/usage/usage-recorder.js";
import { callerOf } from "../guards/callers.js";
import { problemOf, servedApp } from "../server/served-app.js";

describe("GET /usage/events", () => {
  const app = servedApp();
  const single = (user: string, more: object = {}) =>
    app.send("POST", "/compose", { user_id: user, query: "Where?", memories: [], ...more });

  /** The events that come while `work` is done, until `count` came. */
  async function eventsOf(
    count: number,
    work: () => Promise<unknown>,
    apiKey?: string,
    filter: object = {},
  ): Promise<UsageEvent[]> {
    const client = createMemstemClient({ url: app.base, ...(apiKey === undefined ? {} : { apiKey }) });
    const events: UsageEvent[] = [];
    const stream = client.usageEvents(filter);
    const first = stream.next();
    // Until its head came.
    await new Promise((resolve) => setTimeout(resolve, 100));
    await work();
    for (let next = await first; !next.done; next = await stream.next()) {
      events.push(next.value);
      if (events.length >= count) break;
    }
    await stream.return?.();
    return events;
  }

  it("tells prompts, then their reports, under one id, and notes", async () => {
    const events = await eventsOf(3, async () => {
      await single("ana", { request_id: "r1" });
      await app.memstem.recorded?.recorder.flush();
      await app.send("POST", "/feedback", { user_id: "ana", request_id: "r1", cached_tokens: 0, prompt_tokens: 9 });
      await app.memstem.recorded?.recorder.flush();
      await app.send("POST", "/usage/notes", { kind: "deploy", label: "v2" });
    });
    const [composed, reported, noted] = events;
    expect(composed).toMatchObject({ request: { id: 1, requestId: "r1", reportedCachedTokens: null } });
    expect(reported).toMatchObject({ request: { requestId: "r1", reportedCachedTokens: 0, reportedPromptTokens: 9 } });
    expect(noted).toMatchObject({ note: { kind: "deploy", label: "v2" } });
    expect(reported).toMatchObject({ request: { id: 1 } });
  });

  it("tells what fits the filter", async () => {
    const events = await eventsOf(
      1,
      async () => {
        await single("ana");
        await single("ben", { engine: "vllm" });
        await app.memstem.recorded?.recorder.flush();
      },
      undefined,
      { engine: "vllm" },
    );
    expect(events).toMatchObject([{ request: { userId: "ben" } }]);
  });

  it("tells nothing of another tenant", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const body = { user_id: "ana", query: "Where?", memories: [] };
    const events = await eventsOf(
      2,
      async () => {
        await other.send("POST", "/compose", { ...body, request_id: "theirs" });
        await other.send("POST", "/usage/notes", { kind: "deploy", label: "theirs" });
        await acme.send("POST", "/compose", { ...body, request_id: "ours" });
        await app.memstem.recorded?.recorder.flush();
        await acme.send("POST", "/usage/notes", { kind: "deploy", label: "ours" });
      },
      acme.key,
    );
    expect(events).toMatchObject([{ request: { requestId: "ours" } }, { note: { label: "ours" } }]);
    expect(problemOf(await app.send("GET", "/usage/events"))).toMatchObject({ status: 401 });
  });

  it("has so many listeners of a tenant, and room again when one ends", async () => {
    const ending = new AbortController();
    const open = await Promise.all(
      Array.from({ length: MAX_LISTENERS }, () => fetch(`${app.base}/usage/events`, { signal: ending.signal })),
    );
    expect(open.every(({ status }) => status === 200)).toBe(true);
    expect(problemOf(await app.send("GET", "/usage/events"))).toMatchObject({ status: 429 });
    ending.abort();
    await expect
      .poll(async () => {
        const one = new AbortController();
        const { status } = await fetch(`${app.base}/usage/events`, { signal: one.signal });
        one.abort();
        return status;
      })
      .toBe(200);
  });
});
