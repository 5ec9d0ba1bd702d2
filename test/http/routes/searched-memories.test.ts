import { expect, it } from "vitest";
import type { MemoryId } from "../../../src/core/index.js";
import type { SearchOptions } from "../../../src/memory/memory-source.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";

const given: (SearchOptions | undefined)[] = [];
const app = servedApp({
  environment: { MEMPREFIX_MEM0_SEARCH: JSON.stringify({ filters: { topic: "food" } }) },
  source: () => ({
    ...answeringSource([]),
    search: async ({ options }) => {
      given.push(options);
      return [
        { id: "m1" as MemoryId, text: "Ada likes tea." },
        { id: "m2" as MemoryId, text: "Ada lives in Rome.", end: { until: 1 } },
      ];
    },
  }),
});

it("searches a user's memories as a prompt does: by the operator's filters, checked again, and without ended ones", async () => {
  const { text } = await app.send("GET", "/memories?user_id=ada&query=tea");
  expect(JSON.parse(text)).toEqual({ results: [{ id: "m1", memory: "Ada likes tea." }] });
  await app.compose({ user_id: "ada", query: "tea" });
  const [listed, composed] = given;
  expect(listed).toEqual(composed);
  expect(listed).toMatchObject({ filters: { topic: "food" }, isChecked: true });
});
