import { expect, it } from "vitest";
import { callerOf } from "../http/guards/callers.js";
import { everyDoor, type Fronted, memoriesOf, type Sent, withEngine } from "./real-engine.suite.js";

/** vLLM's on a CPU. */
const BLOCK = 128;
const instructions = { role: "system", content: "You answer questions about Ada in a few words." };

/** So many turns of users who take turns, each with its whole history. */
async function day({ chat }: Fronted, name: string, users: number, turns: number, retention = "auto"): Promise<Sent[]> {
  const histories = Array.from({ length: users }, (): object[] => [
    { ...instructions, content: `${instructions.content} ${name}` },
  ]);
  const sent: Sent[] = [];
  for (let turn = 0; turn < turns; turn++)
    for (const [at, history] of histories.entries()) {
      history.push({ role: "user", content: `Where did Ada live on day ${turn}?` });
      const memories = memoriesOf(turn + at);
      const answer = await chat(`${name} ${at}`, history, { memstem: { conversation_id: name, memories, retention } });
      history.push({ role: "assistant", content: answer.text });
      sent.push(answer);
    }
  return sent;
}

/** How many prompts had another number of tokens cached than expected, by more than a block. */
const wrong = (sent: readonly Sent[]) =>
  sent.filter(({ expected, cached }) => Math.abs(expected - cached) > BLOCK).length;

const options = { engine: "vllm", model: "smol", contextTokens: 4_096, blocks: 70 } as const;
withEngine("vLLM with room for 8,960 tokens", options, { MEMSTEM_ENGINE_FAMILY: "vllm" }, (of) => {
  everyDoor(of, "smol");

  it("is read: capacity and block", async () => {
    const text = await (await fetch(`${of().base}/metrics`)).text();
    expect(text).toMatch(/memstem_engine_cache\{part="block_tokens"\} 128\n/);
    expect(text).toMatch(/memstem_engine_cache\{part="capacity_tokens"\} \d+\n/);
  });

  it("caches what is expected of it, to the block, where all fits", async () => {
    const sent = await day(of(), "fits", 1, 12);
    expect(wrong(sent)).toBeLessThanOrEqual(1);
    expect(sent.at(-1)?.cached).toBeGreaterThan(500);
  }, 400_000);

  it.each(["auto", "keep"])(
    "evicts what was expected to be evicted, where users displace each other: %s",
    async (retention) => {
      const sent = await day(of(), `crowd ${retention}`, 5, 10, retention);
      expect(wrong(sent.slice(sent.length / 2))).toBeLessThanOrEqual(sent.length / 10);
    },
    400_000,
  );

  it("is expected to have nothing after a restart, and right again within two prompts, also with other limits", async () => {
    const fronted = of();
    const history: object[] = [instructions];
    const ask = async (turn: number) => {
      history.push({ role: "user", content: `Where did Ada live in year ${turn}?` });
      const sent = await fronted.chat("rita", history, {
        memstem: { conversation_id: "r", memories: memoriesOf(turn) },
      });
      history.push({ role: "assistant", content: sent.text });
      return sent;
    };
    for (let turn = 0; turn < 4; turn++) await ask(turn);
    await fronted.restartEngine({ blocks: 200 });
    const sent: Sent[] = [];
    for (let turn = 4; turn < 9; turn++) sent.push(await ask(turn));
    expect(wrong(sent.slice(2))).toBe(0);
    expect(sent.at(-1)?.cached).toBeGreaterThan(0);
  }, 400_000);

  // From here on keys are in use.
  it("shares nothing between tenants", async () => {
    const { chat, base, database } = of();
    const send = (tenant: string) =>
      chat(
        "same",
        [instructions, { role: "user", content: "Who is Ada?" }],
        { memstem: { memories: memoriesOf(0) } },
        {
          authorization: `Bearer ${callerOf({ base, database }, tenant).key}`,
        },
      );
    await send("one");
    expect((await send("one")).cached).toBeGreaterThan(0);
    expect((await send("two")).cached).toBe(0);
  });
});

const published = { ...options, hasEvents: true } as const;
withEngine("vLLM that publishes its events", published, { MEMSTEM_ENGINE_FAMILY: "vllm" }, (of) => {
  it.each(["auto", "keep"])(
    "caches what is expected of it, exactly, though users and a foreign client displace each other: %s",
    async (retention) => {
      const { engine } = of();
      const foreign = async (n: number) => {
        const content = `Foreign ${n}: ${Array.from({ length: 300 }, (_, at) => `word ${at * n}`).join(" ")}`;
        const body = { model: "smol", max_tokens: 2, messages: [{ role: "user", content }] };
        const headers = { "content-type": "application/json" };
        await fetch(`${engine.url}/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
      };
      const sent: Sent[] = [];
      for (let n = 1; n <= 4; n++) {
        sent.push(...(await day(of(), `exact ${retention} ${n}`, 4, 6, retention)));
        await foreign(n);
      }
      const inexact = sent.filter(({ expected, cached }) => expected !== cached);
      expect(inexact.length).toBeLessThanOrEqual(sent.length / 50);
      expect(sent.some(({ cached }) => cached > 0)).toBe(true);
    },
    600_000,
  );

  it("is right again after a restart", async () => {
    const fronted = of();
    await day(fronted, "before", 1, 3);
    await fronted.restartEngine();
    const sent = await day(fronted, "after", 1, 6);
    expect(sent.slice(2).filter(({ expected, cached }) => expected !== cached)).toEqual([]);
  }, 400_000);
});
