import { describe, expect, it } from "vitest";
import { APIS } from "../../../src/apis/apis.js";
import type { Upstream, UpstreamCall } from "../../../src/engines/upstream/upstream.js";
import { EngineLimits, KnownConstraints } from "../../../src/service/chat/engine-limits.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** An engine that gives the lists of a test, in turn; null: it fails. `onClock` is called with how often it was asked. */
function listing(lists: (object | null)[], isRead = true, onClock = (_calls: number) => {}) {
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
  const limits = new EngineLimits(upstream, isRead, () => {
    onClock(calls.length);
    return time;
  });
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
});

describe("what an engine's list has", () => {
  it("is no unhandled rejection where reading it fails, and is asked for again", async () => {
    let isBroken = true;
    const engine = listing([list(8_192), list(8_192)], true, (calls) => {
      if (calls > 0 && isBroken) throw new Error("no clock");
    });
    const unhandled: unknown[] = [];
    const take = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", take);
    await engine.answered();
    for (let turn = 0; turn < 4; turn++) await new Promise((done) => setImmediate(done));
    process.off("unhandledRejection", take);
    expect(unhandled).toEqual([]);
    isBroken = false;
    engine.pass(MINUTE);
    await engine.answered();
    await expect.poll(() => engine.promptTokensFor()).toBe(7_168);
  });
});

describe("what one tenant's client has an engine refuse", () => {
  it("changes neither the length nor the placement of another tenant's prompts", () => {
    const known = new KnownConstraints(() => 0);
    const [one, other] = [{}, {}].map((tenant) => ({ tenant, userId: "ana", model: "m" })) as [
      Parameters<typeof known.of>[0],
      Parameters<typeof known.of>[0],
    ];
    known.learn(one, { acceptedTokens: 100, inResult: true });
    expect(known.of(one)).toEqual({ acceptedTokens: 100, inResult: true });
    // The placement is the model's; the length is what one user's client may have caused.
    expect(known.of({ ...one, userId: "bob" })).toEqual({ acceptedTokens: null, inResult: true });
    expect(known.of(other)).toEqual({ acceptedTokens: null, inResult: false });
  });
});
