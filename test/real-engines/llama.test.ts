import { expect, it } from "vitest";
import { everyDoor, memoriesOf, withEngine } from "./real-engine.suite.js";

const options = { engine: "llama", model: "smol", contextTokens: 4_096, slots: 1 } as const;
const environment = { MEMPREFIX_ENGINE_FAMILY: "llamacpp", MEMPREFIX_CACHE_SIZE: "1 slots" };
withEngine("llama.cpp's server with one slot", options, environment, (of) => {
  everyDoor(of, "smol");

  it("caches what is expected of it, but for what is lost where texts meet", async () => {
    const history: object[] = [{ role: "system", content: "You answer questions about Ada in a few words." }];
    const off: number[] = [];
    for (let turn = 0; turn < 10; turn++) {
      history.push({ role: "user", content: `Where did Ada live on day ${turn}?` });
      const memprefix = { conversation_id: "c", memories: memoriesOf(turn) };
      const { text, cached, expected, prompt } = await of().chat("ada", history, { memprefix });
      history.push({ role: "assistant", content: text });
      off.push(Math.abs(cached - expected) / prompt);
    }
    expect(off.slice(2).filter((share) => share > 0.05)).toEqual([]);
  }, 400_000);

  it("is right again within two prompts after a restart", async () => {
    const fronted = of();
    await fronted.restartEngine();
    const history: object[] = [];
    for (let turn = 0; turn < 4; turn++) {
      history.push({ role: "user", content: `And on day ${turn}?` });
      const { text, cached, expected, prompt } = await fronted.chat("rita", history, {
        memprefix: { conversation_id: "r", memories: memoriesOf(turn) },
      });
      history.push({ role: "assistant", content: text });
      if (turn >= 2) expect(Math.abs(cached - expected) / prompt).toBeLessThan(0.1);
    }
  }, 240_000);
});
