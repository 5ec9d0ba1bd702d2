import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { callerOf, sendWith } from "../guards/callers.js";
import { type ServedApp, servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine } from "./openai-engine.js";

const USERS = ["ana", "ben", "cem", "dia"];
const TURNS = 12;
const ROOM = 500;

/** Eight of a user's forty memories; most turns find some that turns before have found, too. */
const found = (turn: number) =>
  Array.from({ length: 8 }, (_, n) => `Fact ${(turn * 3 + n * n) % 40}: a house on the long street by the old river.`);

interface Sent {
  readonly total: number;
  readonly cached: number;
  readonly expected: number;
  readonly requestId: string | null;
}

describe("users whose conversations do not fit into the engine's cache together", () => {
  const engine = openAiEngine({ capacityTokens: ROOM * USERS.length });
  const source = answeringSource([]);
  const app = servedApp({ source: () => source, upstream: engine });

  async function day(app: ServedApp, retention: string, headersOf: (user: string) => Record<string, string>) {
    const histories = USERS.map((): ChatMessage[] => [{ role: "system", content: "Be kind, and say what you know." }]);
    const sent: Sent[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      for (const [at, user] of USERS.entries()) {
        source.found = found(turn);
        const history = histories[at] as ChatMessage[];
        history.push({ role: "user", content: `What about day ${turn}, ${user}?` });
        const named = { "x-memprefix-conversation": "trip", ...headersOf(user) };
        const body = { model: "stub-1", messages: history, memprefix: { retention } };
        const response = await sendWith(app, named, "POST", "/v1/chat/completions", body);
        expect(response.status).toBe(200);
        const { usage } = JSON.parse(response.text) as {
          usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
        };
        history.push({ role: "assistant", content: "Indeed." });
        const expected = Number(response.headers.get("x-memprefix-expected-cached-tokens"));
        sent.push({
          total: usage.prompt_tokens,
          cached: usage.prompt_tokens_details.cached_tokens,
          expected,
          requestId: response.headers.get("x-memprefix-request-id"),
        });
      }
    }
    return sent.slice(sent.length / 2);
  }

  const computed = (sent: readonly Sent[]) =>
    sent.reduce((sum, { total, cached }) => sum + total - cached, 0) / sent.length;
  const missed = (sent: readonly Sent[]) =>
    sent.reduce((sum, { total, cached, expected }) => sum + Math.abs(expected - cached) / total, 0) / sent.length;
  const byName = (user: string) => ({ "x-memprefix-user": user });

  it("get prompts that fit together, and what is expected of them is cached, whatever the retention", async () => {
    const [auto, keep, last] = [
      await day(app, "auto", byName),
      await day(app, "keep", (user) => byName(`${user} keeps`)),
      await day(app, "ephemeral", (user) => byName(`${user} drops`)),
    ];
    // So short a time is mostly finding out; `npm run bench -- shared` has figures.
    expect(computed(auto)).toBeLessThan(1.1 * computed(last));
    expect(computed(auto)).toBeLessThan(0.5 * computed(keep));
    expect(missed(auto)).toBeLessThan(0.1);
    expect(missed(keep)).toBeLessThan(0.1);
    const of = new URLSearchParams({ user_id: "ana keeps", request_id: keep.at(-USERS.length)?.requestId ?? "" });
    const { miss } = JSON.parse((await app.send("GET", `/request/explain?${of}`)).text);
    expect(miss).toMatchObject({ cause: "evicted", tokens: expect.any(Number) });
    expect(Number.isInteger(miss.tokens)).toBe(true);
  });

  it("are not told from others by what they are: tenants' prompts fill the same cache", async () => {
    const tenants = new Map(USERS.map((user) => [user, callerOf(app, `of ${user}`).key]));
    const auto = await day(app, "auto", (user) => ({ ...byName(user), authorization: `Bearer ${tenants.get(user)}` }));
    expect(missed(auto)).toBeLessThan(0.1);
    // Fresh starts come in turn: on average a prompt has a fair share.
    expect(auto.reduce((sum, { total }) => sum + total, 0) / auto.length).toBeLessThan(1.1 * ROOM);
  });

  it("find the instructions cached that others of them have sent, behind the same tools, by the same model", async () => {
    const { send } = callerOf(app, "of newcomers");
    const system = { role: "system", content: "Answer in one sentence, from what you remember. ".repeat(9) };
    const tool = { type: "function", function: { name: "search", parameters: { type: "object" } } };
    const first = async (user: string, body: object = {}) => {
      const messages = [system, { role: "user", content: `What about ${user}?` }];
      const chat = { model: "stub-1", messages, ...body };
      const { status, headers } = await send("POST", "/v1/chat/completions", chat, byName(user));
      expect(status).toBe(200);
      return Number(headers.get("x-memprefix-expected-cached-tokens"));
    };
    source.found = [];
    expect([await first("one"), await first("two")]).toEqual([0, 0]);
    expect(await first("three")).toBeGreaterThan(64);
    expect(await first("four", { tools: [tool] })).toBe(0);
    expect(await first("five", { model: "stub-2" })).toBe(0);
  });
});
