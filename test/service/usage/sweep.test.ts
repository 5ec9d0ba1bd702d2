import { expect, it } from "vitest";
import { sweepPrompts } from "../../../src/service/usage/sweep.js";
import type { PromptTable } from "../../../src/store/prompt-figures.js";

it("figures of prompts go after 31 days, or with everything else if that is sooner", async () => {
  const swept: (readonly number[])[] = [];
  const prompts = { sweep: async (...limits: readonly number[]) => void swept.push(limits) } as unknown as PromptTable;
  const DAY = 86_400_000;
  for (const keepDays of [undefined, 365, 7]) await sweepPrompts(prompts, 100 * DAY, keepDays);
  expect(swept).toEqual([69, 69, 93].map((day) => [day * DAY, 200_000]));
});
