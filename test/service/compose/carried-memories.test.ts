import { expect, it } from "vitest";
import { composeWith, found, openService, searchingSource } from "./service-fixture.js";

const [PULSE, MAPS] = [
  "Ana's pulse was 80 on Monday.",
  "Ana collects old maps of the northern coast. ".repeat(4).trim(),
];

it.each([
  ["of the same user where it is about all", {}, true],
  ["not where it is about those that meet conditions", { search: { filters: { topic: "maps" } } }, false],
])("what a search did not find is carried into a prompt, %s", async (_which, among, isCarried) => {
  let searched: Readonly<Record<string, string>> = {};
  const service = openService({ source: searchingSource(async () => found(searched)) });
  const ask = async (query: string, texts: typeof searched, of: object) => {
    searched = texts;
    const carrying = { policy: "carry-over", memoryBudgetTokens: 2_000 } as const;
    return JSON.stringify((await composeWith(service, { userId: "ana", query, ...carrying, ...of })).messages);
  };
  expect(await ask("How am I?", { pulse: PULSE, maps: MAPS }, {})).toContain(PULSE);
  const prompt = await ask("Which maps?", { maps: MAPS }, among);
  expect(prompt).toContain(MAPS);
  expect(prompt.includes(PULSE)).toBe(isCarried);
  await service.close();
});
