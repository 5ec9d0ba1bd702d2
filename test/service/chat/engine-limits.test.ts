import { describe, expect, it } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import type { Upstream, UpstreamCall } from "../../../src/engines/upstream/upstream.js";
import { EngineLimits } from "../../../src/service/chat/engine-limits.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** An engine that gives the lists of a test, in turn; null: it fails. */
function listing(lists: (object | null)[], isRead = true) {
  let time = 0;
  const calls: UpstreamCall[] = [];
  const upstream: Pick<Upstream, "send"> = {
    send: async (call) => {
      calls.push(call);
      const list = lists.shift() ?? null;
      async function* body() {
        yield Buffer.from(JSON.stringify(list ?? { error: "none" }));
      }
      return { status: list === null ? 500 : 200, headers: [], body: body() };
    },
  };
  const limits = new EngineLimits(upstream, isRead, () => time);
  const chat = {
    api: APIS.chat,
    body: { model: "m" },
    written: (sent: object) => JSON.stringify(sent),
    query: "",
    headers: [] as [string, string][],
  };
  return {
    calls,
    chat,
    promptTokensFor: (of: Partial<typeof chat> = {}) =>
      limits.destinationOf({ ...chat, ...of }, (text) => text.length).promptTokens,
    limits,
    async answered(of: Partial<typeof chat> = {}) {
      limits.answered({ ...chat, ...of });
      await new Promise((done) => setImmediate(done));
      return calls.length;
    },
    pass: (ms: number) => {
      time += ms;
    },
  };
}

const list = (max_model_len: number) => ({ data: [{ id: "m", max_model_len }, { id: "n" }] });

describe("an engine's limits", () => {
  it("are asked for once an hour, and the last answer holds while they are", async () => {
    const engine = listing([list(8_192), list(4_096)]);
    expect(engine.promptTokensFor()).toBeNull();
    expect(await engine.answered()).toBe(1);
    expect(engine.promptTokensFor()).toBe(7_168);
    expect(engine.promptTokensFor({ body: { model: "m", max_tokens: 192, n: 1 } as never })).toBe(8_000);
    expect(engine.promptTokensFor({ body: { model: "m", max_completion_tokens: 92, max_tokens: 9 } as never })).toBe(
      8_100,
    );
    engine.pass(HOUR - 1);
    expect(await engine.answered()).toBe(1);
    engine.pass(1);
    engine.limits.answered(engine.chat);
    expect(engine.promptTokensFor()).toBe(7_168);
    await engine.answered();
    expect(engine.calls).toHaveLength(2);
    expect(engine.promptTokensFor()).toBe(3_072);
  });

  it("are asked for again after a failure, less and less often", async () => {
    const engine = listing([null, null, null, list(8_192), null]);
    expect(await engine.answered()).toBe(1);
    for (const [minutes, calls] of [
      [1, 2],
      [2, 3],
      [4, 4],
    ] as const) {
      expect(engine.promptTokensFor()).toBeNull();
      engine.pass(minutes * MINUTE - 1);
      expect(await engine.answered()).toBe(calls - 1);
      engine.pass(1);
      expect(await engine.answered()).toBe(calls);
    }
    expect(engine.promptTokensFor()).toBe(7_168);
    engine.pass(HOUR);
    expect(await engine.answered()).toBe(5);
    expect(engine.promptTokensFor()).toBeNull();
    for (let failure = 0; failure < 40; failure++) {
      engine.pass(HOUR);
      expect(await engine.answered()).toBe(6 + failure);
    }
  });

  it("are asked for with a client's credentials and nothing else of it, and are told to nobody else", async () => {
    const engine = listing([list(8_192), list(4_096)]);
    const of = (key: string, more: string) => ({
      query: "?api-version=1",
      headers: [
        ["authorization", key],
        ["x-request-id", more],
        ["x-thread", more],
      ] as [string, string][],
    });
    await engine.answered(of("a", "1"));
    expect(engine.calls[0]).toMatchObject({ method: "GET", path: "models", query: "?api-version=1", body: null });
    expect(engine.calls[0]?.headers).toEqual([
      ["authorization", "a"],
      ["user-agent", "memprefix"],
    ]);
    expect(engine.promptTokensFor(of("a", "2"))).toBe(7_168);
    for (const other of [of("b", "1"), { ...of("a", "1"), query: "" }, {}])
      expect(engine.promptTokensFor(other)).toBeNull();
    // One client after the other, not all at once.
    expect(await engine.answered(of("b", "1"))).toBe(1);
    engine.pass(1_000);
    expect(await engine.answered(of("b", "1"))).toBe(2);
    expect(engine.promptTokensFor(of("b", "2"))).toBe(3_072);
    expect(engine.promptTokensFor(of("a", "2"))).toBe(7_168);
  });

  it("are not asked for where prompts have a limit of their own", async () => {
    const none = listing([], false);
    expect(none.promptTokensFor()).toBeNull();
    expect(await none.answered()).toBe(0);
  });

  it("come with the tokens of a chat's tools, which are counted once", () => {
    const { limits, chat } = listing([]);
    let counted = 0;
    const count = (text: string) => {
      counted += 1;
      return text.length;
    };
    const tools = [{ type: "function", function: { name: "f" } }];
    const tokens = (body: object) => limits.destinationOf({ ...chat, body: body as never }, count).besideTokens;
    expect([tokens({}), tokens({ tools: [] }), tokens({ tools: "none" })]).toEqual([0, 0, 0]);
    expect(tokens({ tools })).toBe(JSON.stringify(tools).length);
    expect(tokens({ tools, model: "n" })).toBe(JSON.stringify(tools).length);
    expect(counted).toBe(1);
  });
});
