import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";

const facts = Array.from({ length: 40 }, (_, n) => ({ id: `m${n}`, memory: `Fact number ${n} about Ada is this one` }));

describe("POST /compose with a retention", () => {
  const app = servedApp({
    environment: { MEMPREFIX_ENGINE_COST: '{"cost":{"kind":"money","uncached":1,"written":1,"cached":0.9}}' },
  });

  async function converse(retention: string, turns: number) {
    const history: { role: string; content: string }[] = [];
    const exchanges = [];
    for (let n = 0; n < turns; n++) {
      history.push({ role: "user", content: `Question ${n}?` });
      const request = {
        user_id: "ada",
        conversation_id: retention,
        request_id: `${retention}-${n}`,
        messages: [...history],
        memories: facts.slice(4 * n, 4 * n + 8),
        retention,
      };
      exchanges.push({ request, answer: await app.compose(request) });
      history.push({ role: "assistant", content: "Yes." });
    }
    return exchanges;
  }

  it.each([
    ["keep", 5 * 4 + 8],
    ["volatile", 5 * 4 + 8],
    ["ephemeral", 8],
  ])("%s holds what it says in the sixth prompt", async (retention, blocks) => {
    const { answer } = (await converse(retention, 6)).at(-1) ?? { answer: null };
    expect(answer?.plan).toMatchObject({ retention, fresh_start: false });
    expect(JSON.stringify(answer?.messages).split("- Fact number").length - 1).toBe(blocks);
  });

  it("auto starts afresh where what is kept costs more than it saves, and says so", async () => {
    const plans = (await converse("auto", 8)).map(({ answer }) => answer.plan);
    expect(plans.some(({ fresh_start }) => fresh_start)).toBe(true);
  });

  it.each(["volatile", "ephemeral", "auto"])("%s answers a repeated request with the same bytes", async (retention) => {
    for (const { request, answer } of await converse(retention, 8)) expect(await app.compose(request)).toEqual(answer);
  });

  it("forgets a memory that a turn of any retention gave", async () => {
    await converse("ephemeral", 3);
    await app.send("DELETE", "/users/ada/memories/m4");
    const again = await converse("ephemeral", 3);
    for (const { answer } of again) expect(JSON.stringify(answer.messages)).not.toContain("Fact number 4 ");
  });
});
