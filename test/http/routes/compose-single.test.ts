import { describe, expect, it } from "vitest";
import { countO200k } from "../../../src/cli/o200k.js";
import { composeBody } from "../../../src/http/contracts/compose-contract.js";
import { found, searchingSource } from "../../service/compose/service-fixture.js";
import { servedApp } from "../server/served-app.js";

const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const paris = { id: "m-paris", memory: "Ada lives in Paris" };
const bicycle = { id: "m-bicycle", memory: "Ada rides a bicycle" };

describe("POST /compose without a conversation", () => {
  const app = servedApp();

  it("puts the memories before the question, in retrieval order where nothing is cached", async () => {
    const answer = await app.compose({ user_id: "ada", query: "Where does Ada live?", memories: [paris, tea] });
    expect(answer.messages).toEqual([
      {
        role: "user",
        content: `<memories>\n- ${paris.memory}\n- ${tea.memory}\n</memories>\n\nWhere does Ada live?`,
      },
    ]);
    expect(answer.blocks).toEqual([
      { label: 1, memory_id: "m-paris", placement: "new", rank: 0, replaces: [] },
      { label: 2, memory_id: "m-tea", placement: "new", rank: 1, replaces: [] },
    ]);
    expect(answer.annotations).toEqual([]);
    expect(answer.warnings).toEqual([]);
    expect(answer.plan).toMatchObject({ layout: "single", policy: "prefix-exact", expected_cached_tokens: 0 });
    expect(answer.engine.headers).toEqual({ "x-request-id": answer.request_id });
  });

  it("starts with the blocks that are cached already and gives the most relevant one again on one line", async () => {
    await app.compose({ user_id: "ada", query: "one", memories: [paris, tea] });
    const answer = await app.compose({ user_id: "ada", query: "two", memories: [bicycle, tea, paris] });
    expect(answer.blocks.map(({ label, placement }) => [label, placement])).toEqual([
      [1, "cached_prefix"],
      [2, "cached_prefix"],
      [3, "new"],
    ]);
    expect(answer.annotations).toEqual([`Most relevant: ${bicycle.memory}`]);
    expect(answer.messages[0]?.["content"]).toBe(
      `<memories>\n- ${paris.memory}\n- ${tea.memory}\n- ${bicycle.memory}\n` +
        `</memories>\nMost relevant: ${bicycle.memory}\n\ntwo`,
    );
    expect(answer.plan).toMatchObject({ order_changed: true, search_path: [0] });
    expect(answer.plan.expected_cached_tokens).toBeGreaterThan(0);
    expect(answer.plan.expected_cached_tokens + answer.plan.uncached_tokens).toBe(answer.plan.total_tokens);
  });

  it("takes null for absent in every field that may be absent", async () => {
    const fields = Object.keys(composeBody.shape).filter((name) => name !== "user_id" && name !== "query");
    const nulls = Object.fromEntries(fields.map((name) => [name, null]));
    const answer = await app.compose({ ...nulls, user_id: "ada", query: "Tea?" });
    expect(fields).toContain("memory_budget_ratio");
    expect(answer.messages).toEqual([{ role: "user", content: "Tea?" }]);
  });

  it("has no annotations where they are switched off, and ContextPilot's where they are wanted", async () => {
    const compose = (annotations: unknown, ...memories: object[]) =>
      app.compose({ user_id: "ada", query: "Tea?", memories, annotations });
    await compose(true, paris);
    expect((await compose(false, bicycle, paris)).annotations).toEqual([]);
    // Blocks have labels then.
    await compose("paper", paris);
    const line = "Please read the context in the following priority order: [Doc_2] > [Doc_1] and answer the question.";
    const answer = await compose("paper", bicycle, paris);
    expect(answer.annotations).toEqual([line]);
    expect(answer.messages[0]?.["content"]).toContain(
      `[Doc_1] ${paris.memory}\n[Doc_2] ${bicycle.memory}\n</memories>\n${line}\n`,
    );
  });

  it("carries cached blocks over within the budget, and names them in no annotation", async () => {
    const ask = (memories: object[], memory_budget_tokens?: number) =>
      app.compose({ user_id: "carla", query: "Tea?", memories, memory_budget_tokens, policy: "carry-over" });
    await ask([tea, bicycle, paris]);
    const answer = await ask([paris, tea], 1_000);
    expect(answer.warnings).toEqual([]);
    expect(answer.blocks.map(({ memory_id, placement, rank }) => [memory_id, placement, rank])).toEqual([
      ["m-tea", "cached_prefix", 1],
      ["m-bicycle", "carried_over", null],
      ["m-paris", "cached_prefix", 0],
    ]);
    expect(answer.annotations).toEqual([`Most relevant: ${paris.memory}`]);
    // Enough for the bicycle, but what was retrieved counts, too.
    const budget = countO200k(tea.memory) + countO200k(bicycle.memory);
    expect((await ask([paris, tea], budget)).blocks.map(({ placement }) => placement)).not.toContain("carried_over");
  });
});

describe("POST /compose without memories", () => {
  const answers = new Map([
    ["Tea?", found({ "m-tea": tea.memory, "m-paris": paris.memory })],
    ["tea", found({ "m-bicycle": bicycle.memory })],
  ]);
  const app = servedApp({
    source: () => searchingSource(async ({ query, topK }) => answers.get(query)?.slice(0, topK) ?? []),
  });

  it("searches the source for the query, else for the last question, for at most top_k", async () => {
    const idsFor = async (body: object) =>
      (await app.compose({ user_id: "ada", ...body })).blocks.map(({ memory_id }) => memory_id);
    expect(await idsFor({ query: "Tea?" })).toEqual(["m-tea", "m-paris"]);
    expect(await idsFor({ messages: [{ role: "user", content: "Tea?" }], top_k: 1 })).toEqual(["m-tea"]);
    expect(await idsFor({ messages: [{ role: "user", content: "Tea?" }], query: "tea" })).toEqual(["m-bicycle"]);
    expect(await idsFor({ query: "something else" })).toEqual([]);
  });
});
