import { connect } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createMemprefixClient, type UsageEvent, type UsageEventsOptions } from "../../../src/client/index.js";
import { MAX_LISTENERS, MAX_LIVE_PROMPTS } from "../../../src/service/usage/usage-events.js";
import { composed } from "../../store/usage/usage-entries.js";
import { callerOf } from "../guards/callers.js";
import { problemOf, servedApp } from "../server/served-app.js";

/** What came over a stream so far. */
interface Heard {
  readonly events: UsageEvent[];
  /** When each came, on the clock of `performance`. */
  readonly times: number[];
  readonly ids: () => string[];
  readonly leftOut: () => number;
  /** Prompts and notes in all, those that were counted only among them. */
  readonly all: () => number;
  readonly end: () => Promise<void>;
}

describe("GET /usage/events", () => {
  const app = servedApp();
  const single = (user: string, more: object = {}) =>
    app.send("POST", "/compose", { user_id: user, query: "Where?", memories: [], ...more });
  const endings: AbortController[] = [];
  // An open stream keeps the app open.
  afterEach(() => {
    for (const ending of endings.splice(0)) ending.abort();
  });
  const parts = () => {
    const { recorded } = app.memprefix;
    if (recorded === null) throw new Error("nothing is recorded");
    return recorded;
  };
  /** Records prompts in one batch, as another process would. */
  const record = (count: number, prefix: string, more: object = {}) =>
    parts().log.record(
      Array.from({ length: count }, (_, n) => composed({ request: `${prefix}${n}`, at: Date.now(), ...more })),
      Date.now(),
    );

  /** Follows events from now on. */
  async function hear(filter: UsageEventsOptions = {}, apiKey?: string): Promise<Heard> {
    const listen = vi.spyOn(parts().events, "listen");
    const ending = new AbortController();
    endings.push(ending);
    const client = createMemprefixClient({ url: app.base, ...(apiKey === undefined ? {} : { apiKey }) });
    const events: UsageEvent[] = [];
    const times: number[] = [];
    const reading = (async () => {
      for await (const event of client.usageEvents(filter, { signal: ending.signal })) {
        events.push(event);
        times.push(performance.now());
      }
    })().catch(() => {});
    await expect.poll(() => listen.mock.results.length).toBe(1);
    await listen.mock.results[0]?.value;
    listen.mockRestore();
    const requests = () => events.flatMap((event) => ("requests" in event ? [event.requests] : []));
    const leftOut = () => requests().reduce((sum, each) => sum + each.more, 0);
    const rows = () => requests().flatMap((each) => each.rows);
    const dropped = () => events.reduce((sum, event) => sum + ("dropped" in event ? event.dropped.count : 0), 0);
    const notes = () => events.filter((event) => "note" in event).length;
    return {
      events,
      times,
      ids: () => rows().map(({ requestId }) => requestId),
      leftOut,
      all: () => rows().length + leftOut() + dropped() + notes(),
      end: async () => {
        ending.abort();
        await reading;
      },
    };
  }

  it("tells each prompt before the next one comes, in order, and none twice or never", async () => {
    const heard = await hear();
    for (let n = 0; n < 8; n++) {
      await single("ana", { request_id: `r${n}` });
      await expect.poll(() => heard.ids().length, { interval: 5 }).toBe(n + 1);
    }
    expect(heard.ids()).toEqual(Array.from({ length: 8 }, (_, n) => `r${n}`));
    expect(heard.leftOut()).toBe(0);
    await heard.end();
  });

  it("tells prompts, then their reports, under one id, and notes", async () => {
    const heard = await hear();
    await single("ana", { request_id: "r1" });
    await expect.poll(() => heard.events.length).toBe(1);
    await app.send("POST", "/feedback", { user_id: "ana", request_id: "r1", cached_tokens: 0, prompt_tokens: 9 });
    await expect.poll(() => heard.events.length).toBe(2);
    await app.send("POST", "/usage/notes", { kind: "deploy", label: "v2" });
    await expect.poll(() => heard.events.length).toBe(3);
    const report = { requestId: "r1", reportedCachedTokens: 0, reportedPromptTokens: 9 };
    expect(heard.events).toMatchObject([
      { requests: { rows: [{ id: 1, requestId: "r1", reportedCachedTokens: null }], more: 0 } },
      { requests: { rows: [{ id: 1, ...report }], more: 0 } },
      { note: { kind: "deploy", label: "v2" } },
    ]);
    await heard.end();
  });

  it("tells the newest of many, oldest first, four times a second at most, and counts every other", async () => {
    const askedAt = performance.now();
    const heard = await hear();
    const narrow = await hear({ limit: 0 });
    const until = performance.now() + 1_500;
    let count = 0;
    for (let batch = 0; performance.now() < until; batch++, count += 100) {
      await record(100, `${batch}-`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await expect.poll(() => heard.all()).toBe(count);
    await expect.poll(() => narrow.leftOut()).toBe(count);
    expect(heard.leftOut()).toBeGreaterThan(0);
    expect(narrow.ids()).toEqual([]);
    const numbers = heard.events.map((event) => ("requests" in event ? event.requests.rows.map(({ id }) => id) : []));
    for (const rows of numbers) expect(rows.length).toBeLessThanOrEqual(MAX_LIVE_PROMPTS);
    expect(numbers.flat()).toEqual(numbers.flat().toSorted((a, b) => a - b));
    expect(numbers.at(-1)?.at(-1)).toBe(count);
    // Each turn begins a quarter of a second after the one before ended, the first not before it was asked for; any may arrive late.
    expect(((heard.times.at(-1) ?? 0) - askedAt) / (heard.times.length - 1)).toBeGreaterThan(240);
    await Promise.all([heard.end(), narrow.end()]);
  });

  it("finds one user's prompts among thousands: filters before it bounds", async () => {
    const heard = await hear({ userId: "rare" });
    const missed = await hear({ cause: "rewritten_history", limit: 5 });
    await record(1_000, "a");
    await record(1, "rare", { user: "rare", reusable: 900, facts: { isRewritten: true } });
    await record(1_000, "b");
    await expect.poll(() => heard.ids()).toEqual(["rare0"]);
    await expect.poll(() => missed.ids()).toEqual(["rare0"]);
    expect(heard.leftOut() + missed.leftOut()).toBe(0);
    await single("ana");
    await single("rare", { engine: "vllm", request_id: "second" });
    await expect.poll(() => heard.ids()).toEqual(["rare0", "second"]);
    await Promise.all([heard.end(), missed.end()]);
  });

  it("reads and writes prompts once for all who follow the same, and nothing while nobody does", async () => {
    const changes = vi.spyOn(parts().log, "changes");
    await single("ana");
    await parts().recorder.flush();
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(changes).not.toHaveBeenCalled();
    const heard = [await hear(), await hear(), await hear({ model: "sonnet" })];
    await single("ben");
    await expect.poll(() => heard.slice(0, 2).every((each) => each.ids().length === 1)).toBe(true);
    const [, followed] = changes.mock.calls.at(-1) ?? [];
    expect(followed).toHaveLength(2);
    await Promise.all(heard.map((each) => each.end()));
    await expect
      .poll(async () => {
        changes.mockClear();
        await new Promise((resolve) => setTimeout(resolve, 400));
        return changes.mock.calls.length;
      })
      .toBe(0);
  });

  it("tells nothing of another tenant, no row, no count and no note", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const body = { user_id: "ana", query: "Where?", memories: [] };
    const heard = await hear({}, acme.key);
    const counts = await hear({ limit: 0 }, acme.key);
    await record(200, "theirs", { tenant: "other" });
    await other.send("POST", "/compose", { ...body, request_id: "theirs" });
    await other.send("POST", "/usage/notes", { kind: "deploy", label: "theirs" });
    await acme.send("POST", "/compose", { ...body, request_id: "ours" });
    await expect.poll(() => heard.ids()).toEqual(["ours"]);
    await acme.send("POST", "/usage/notes", { kind: "deploy", label: "ours" });
    await expect.poll(() => heard.all()).toBe(2);
    expect(heard.leftOut()).toBe(0);
    expect(heard.events.at(-1)).toMatchObject({ note: { label: "ours" } });
    await expect.poll(() => counts.all()).toBe(2);
    expect(counts.leftOut()).toBe(1);
    expect(problemOf(await app.send("GET", "/usage/events"))).toMatchObject({ status: 401 });
    await Promise.all([heard.end(), counts.end()]);
  });

  it("keeps little for a reader that does not read, and says then how many it left out", async () => {
    const listen = vi.spyOn(parts().events, "listen");
    const address = new URL(app.base);
    const socket = connect(Number(address.port), address.hostname);
    socket.write(`GET /usage/events HTTP/1.1\r\nhost: ${address.host}\r\n\r\n`);
    let text = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    await expect.poll(() => text).toContain(": memprefix");
    socket.pause();
    const [, listener] = listen.mock.calls[0] ?? [];
    listen.mockRestore();
    const { cursor } = await parts().log.changes(null, []);
    await record(50, "wide", { tenant: "acme" });
    const { changes } = await parts().log.changes(cursor, [{ filter: { tenant: "acme" }, limit: 50 }]);
    const rows = changes[0]?.rows ?? [];
    // Ten times what the socket's buffers and the bound hold.
    let told = 0;
    for (; told < 2_000; told++) {
      listener?.tell({ rows, leftOut: 10, notes: [] });
      if (told % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(text.length).toBeLessThan(1_000);
    socket.resume();
    const count = (pattern: RegExp) => [...text.matchAll(pattern)].reduce((sum, [, n]) => sum + Number(n), 0);
    const seen = () =>
      count(/"more":(\d+)/g) +
      (text.match(/"request_id"/g)?.length ?? 0) +
      count(/event: dropped\r?\ndata: \{"count":(\d+)\}/g);
    await expect.poll(seen).toBe(told * (rows.length + 10));
    expect(text).toContain("event: dropped");
    expect(text.length).toBeLessThan(8_000_000);
    socket.destroy();
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
