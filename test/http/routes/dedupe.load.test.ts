import { expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";

const app = servedApp();

it("looking for memories in others takes time in proportion to the texts, whatever they repeat", async () => {
  const memories = Array.from({ length: 1_000 }, (_, n) => ({
    id: `m-${n}`,
    memory: `${"Ana drinks. ".repeat(280)}${n}.`,
  }));
  const timeOf = async (asked: object) => {
    const since = performance.now();
    const { blocks } = await app.compose({ query: "Who?", memories, ...asked });
    expect(blocks).toHaveLength(1_000);
    return performance.now() - since;
  };
  const contained = await timeOf({ user_id: "ada" });
  expect(contained).toBeLessThan(10 * (await timeOf({ user_id: "bob", dedupe: "exact" })) + 2_000);
});
