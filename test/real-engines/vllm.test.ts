import { expect, it } from "vitest";
import { checkIsolation } from "../../src/cli/isolation.js";
import { readSettings } from "../../src/cli/settings.js";
import { callerOf } from "../http/guards/callers.js";
import { everyDoor, type Fronted, memoriesOf, type Sent, withEngine } from "./real-engine.suite.js";

/** vLLM's on a CPU. */
const BLOCK = 128;
/** Of 72 prompts each, of clients at once: the first with a reset halfway, the second with a restart. */
const ROUNDS = 7;
const instructions = { role: "system", content: "You answer questions about Ada in a few words." };

type Retention = "auto" | "keep";

interface Day {
  /** Each with conversations of its own. */
  readonly users: number;
  readonly turns: number;
  /** The first user's, the second's, and so on from the start. Default: `auto` for all. */
  readonly retentions?: readonly Retention[];
  /** Of each user, who takes turns in them. Default 1. */
  readonly conversations?: number;
  /** Whether users send at once. Default: one after the other. */
  readonly isAtOnce?: boolean;
  /** What happens halfway, between two turns. */
  readonly halfway?: () => Promise<unknown>;
}

/** Half of the users want to keep what they have been sent, whatever it costs the others. */
const MIXED = ["auto", "keep"] as const;

/** So many turns of users, each with its whole history. */
async function day(
  { chat }: Fronted,
  name: string,
  { users, turns, retentions = ["auto"], conversations = 1, isAtOnce = false, halfway }: Day,
): Promise<Sent[]> {
  const histories = Array.from({ length: users * conversations }, (): object[] => [
    { ...instructions, content: `${instructions.content} ${name}` },
  ]);
  const sent: Sent[] = [];
  const ask = async (user: number, conversation: number, turn: number) => {
    const at = user * conversations + conversation;
    const history = histories[at] as object[];
    history.push({ role: "user", content: `Where did Ada live on day ${turn}?` });
    const retention = retentions[user % retentions.length];
    const memprefix = { conversation_id: `${name} ${conversation}`, memories: memoriesOf(turn + at), retention };
    const answer = await chat(`${name} ${user}`, history, { memprefix });
    history.push({ role: "assistant", content: answer.text });
    sent.push(answer);
  };
  for (let turn = 0; turn < turns; turn++) {
    if (turn === Math.floor(turns / 2)) await halfway?.();
    for (let conversation = 0; conversation < conversations; conversation++) {
      const asked = Array.from({ length: users }, (_, user) => () => ask(user, conversation, turn));
      if (isAtOnce) await Promise.all(asked.map((each) => each()));
      else for (const each of asked) await each();
    }
  }
  return sent;
}

/** The prompts that had another number of tokens cached than expected, by more than so many. */
const wrong = (sent: readonly Sent[], tolerance: number) =>
  sent.filter(({ expected, cached }) => Math.abs(expected - cached) > tolerance);

/** One conversation, a turn a call. */
function talk({ chat }: Fronted, user: string) {
  const history: object[] = [{ ...instructions, content: `${instructions.content} ${user}` }];
  let turn = 0;
  return async (): Promise<Sent> => {
    history.push({ role: "user", content: `Where did Ada live in year ${turn}?` });
    // By itself memprefix may start afresh in any turn, and have nothing cached.
    const memprefix = { conversation_id: "talk", memories: memoriesOf(turn++), retention: "keep" };
    const sent = await chat(user, history, { memprefix });
    history.push({ role: "assistant", content: sent.text });
    return sent;
  };
}

/** How an engine comes back. */
const COLD = { name: "a cold one", options: {}, blockTokens: BLOCK } as const;
const OTHER_BLOCKS = {
  name: "one with other blocks",
  options: { blocks: 400, blockTokens: 64 },
  blockTokens: 64,
} as const;
type Successor = typeof COLD | typeof OTHER_BLOCKS;

/** The engine is killed while it streams, and comes back, in each of the ways. */
function isRightAgain(
  of: () => Fronted,
  successors: readonly Successor[],
  tolerance: (blockTokens: number) => number,
): void {
  const names = successors.map(({ name }) => name).join(" and of ");
  it(`goes on where the engine was killed in a stream, and is right again within two prompts of ${names}`, async () => {
    const fronted = of();
    const ask = talk(fronted, "rita");
    for (let turn = 0; turn < 4; turn++) await ask();

    const body = {
      model: "smol",
      stream: true,
      max_tokens: 400,
      messages: [{ role: "user", content: "Count to 500." }],
    };
    const streamed = await fronted.post("/v1/chat/completions", body, { "x-memprefix-user": "rita" });
    const reader = streamed.body?.getReader();
    await reader?.read();
    await fronted.engine.kill();
    // Rejects if the stream has broken off already.
    await reader?.cancel().catch(() => {});
    const compose = { user_id: "rita", conversation_id: "dry", query: "Who is Ada?", memories: memoriesOf(0) };
    expect((await fronted.post("/compose", compose)).status).toBe(200);
    const whole = { ...body, stream: false };
    expect((await fronted.post("/v1/chat/completions", whole, { "x-memprefix-user": "rita" })).status).toBe(502);

    for (const { options, blockTokens } of successors) {
      await fronted.restartEngine(options);
      const sent: Sent[] = [];
      for (let turn = 0; turn < 5; turn++) sent.push(await ask());
      expect(wrong(sent.slice(2), tolerance(blockTokens)), JSON.stringify(sent)).toEqual([]);
      // Which prompts start afresh depends on the times of the engine.
      expect(Math.max(...sent.map(({ cached }) => cached))).toBeGreaterThan(500);
      expect((sent.at(-1)?.cached ?? 1) % blockTokens).toBe(0);
    }
  }, 1_200_000);
}

const options = { engine: "vllm", model: "smol", contextTokens: 4_096, blocks: 70 } as const;
withEngine("vLLM with room for 8,960 tokens", options, { MEMPREFIX_ENGINE_FAMILY: "vllm" }, (of) => {
  everyDoor(of, "smol");

  it("is read: capacity and block", async () => {
    const text = await (await fetch(`${of().base}/metrics`)).text();
    expect(text).toMatch(/memprefix_engine_cache\{part="block_tokens"\} 128\n/);
    expect(text).toMatch(/memprefix_engine_cache\{part="capacity_tokens"\} \d+\n/);
  });

  it("evicts what was expected to be evicted, where users displace each other", async () => {
    const sent = await day(of(), "crowd", { users: 5, turns: 10, retentions: MIXED });
    expect(wrong(sent.slice(sent.length / 2), BLOCK).length).toBeLessThanOrEqual(sent.length / 10);
  }, 1_200_000);

  isRightAgain(of, [COLD, OTHER_BLOCKS], (blockTokens) => blockTokens);

  // By the engine of the test before, which holds 25,600 tokens in blocks of 64.
  it("caches what is expected of it, within a block, where all fits", async () => {
    const sent = await day(of(), "fits", { users: 4, turns: 15, isAtOnce: true });
    expect(wrong(sent, 64).length, JSON.stringify(wrong(sent, 64))).toBeLessThanOrEqual(sent.length / 20);
    // Which prompts start afresh depends on the times of the engine.
    expect(Math.max(...sent.map(({ cached }) => cached))).toBeGreaterThan(500);
  }, 1_200_000);

  // From here on keys are in use.
  it("shares nothing between tenants", async () => {
    const { chat, base, database } = of();
    const send = (tenant: string) =>
      chat(
        "same",
        [instructions, { role: "user", content: "Who is Ada?" }],
        { memprefix: { memories: memoriesOf(0) } },
        {
          authorization: `Bearer ${callerOf({ base, database }, tenant).key}`,
        },
      );
    await send("one");
    expect((await send("one")).cached).toBeGreaterThan(0);
    expect((await send("two")).cached).toBe(0);
  });
});

// Two layers: 504 prompts are computed in minutes, and the cache holds what it would hold of thirty.
const published = { ...options, events: "free", layers: 2 } as const;
withEngine("vLLM that publishes its events", published, { MEMPREFIX_ENGINE_FAMILY: "vllm" }, (of) => {
  const foreign = async (n: number) => {
    const content = `Foreign ${n}: ${Array.from({ length: 300 }, (_, at) => `word ${at * n}`).join(" ")}`;
    const body = { model: "smol", max_tokens: 2, messages: [{ role: "user", content }] };
    const headers = { "content-type": "application/json" };
    const { url } = of().engine;
    await fetch(`${url}/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
  };

  it("caches what is expected of it, exactly, though users and a foreign client displace each other", async () => {
    const sent: Sent[] = [];
    for (let n = 1; n <= 2; n++) {
      sent.push(...(await day(of(), `exact ${n}`, { users: 4, turns: 6, retentions: MIXED })));
      await foreign(n);
    }
    expect(wrong(sent, 0), JSON.stringify(wrong(sent, 0))).toEqual([]);
    expect(sent.some(({ cached }) => cached > 0)).toBe(true);
  }, 1_200_000);

  // Of prompts at once that begin alike, some may be off by blocks that others of them have.
  it("caches what is expected of it, in 99 of 100 prompts: four users at once, who displace each other, a foreign client, a reset and a restart", async () => {
    const reset = async () => {
      const resetting = new URL("/reset_prefix_cache", of().engine.url);
      expect((await fetch(resetting, { method: "POST" })).status).toBe(200);
    };
    const halfways = [reset, () => of().restartEngine()];
    const sent: Record<Retention, Sent[]> = { keep: [], auto: [] };
    for (let n = 0; n < ROUNDS; n++) {
      const retention = n % 2 === 0 ? "keep" : "auto";
      const busy = { users: 4, turns: 6, conversations: 3, isAtOnce: true, retentions: [retention] } as const;
      const halfway = halfways[n];
      const [some] = await Promise.all([
        day(of(), `busy ${n}`, { ...busy, ...(halfway === undefined ? {} : { halfway }) }),
        foreign(n),
      ]);
      sent[retention].push(...some);
    }
    const cachedOf = (some: readonly Sent[]) => some.filter(({ cached }) => cached > 0).length;
    // `auto` may begin afresh in any turn, by how fast this engine is.
    expect(cachedOf(sent.keep)).toBeGreaterThan(sent.keep.length / 4);
    expect(cachedOf(sent.auto)).toBeGreaterThan(0);
    const all = [...sent.keep, ...sent.auto];
    expect(all.length).toBe(ROUNDS * 72);
    const inexact = wrong(all, 0);
    expect(inexact.length, JSON.stringify(inexact)).toBeLessThanOrEqual(all.length / 100);
  }, 1_200_000);

  it("keeps salts apart, and doctor --isolation says so in each of 200 runs", async () => {
    const settings = readSettings({ MEMPREFIX_UPSTREAM_URL: of().engine.url, MEMPREFIX_ENGINE_FAMILY: "vllm" });
    for (let run = 0; run < 200; run++) {
      const findings = await checkIsolation(settings, { model: "smol", keys: [] });
      expect(
        findings.map(({ state }) => state),
        JSON.stringify(findings),
      ).toEqual(["ok"]);
    }
  }, 1_200_000);

  // A cold one with the same blocks is in the test before.
  isRightAgain(of, [OTHER_BLOCKS], () => 0);
});
