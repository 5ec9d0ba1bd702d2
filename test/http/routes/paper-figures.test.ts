import { describe, expect, it } from "vitest";
import { batchResult } from "../../../src/http/contracts/batch-contract.js";
import { servedApp } from "../server/served-app.js";

/* ContextPilot's figures 6 and 7 (sections 5.1 and 5.2) as printed, over HTTP. */

/** Texts of which none contains another. */
const TEXTS = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "gum", "hazel", "iris", "juniper"];
const CONTEXTS = {
  C1: [2, 1, 3],
  C2: [2, 6, 1],
  C3: [4, 1, 0],
  C6: [2, 1, 4],
  C7: [5, 7, 8],
  C8: [1, 2, 9],
};
type Name = keyof typeof CONTEXTS;

const request = (name: Name, more: object = {}) => ({
  user_id: "ada",
  query: `What of ${name}?`,
  memories: CONTEXTS[name].map((block) => ({ id: `${block}`, memory: `A ${TEXTS[block]} stands there.` })),
  ...more,
});

describe("ContextPilot's figures, over HTTP", () => {
  const app = servedApp();

  const batch = async (names: readonly Name[], more: object = {}) => {
    const requests = names.map((name) => request(name));
    const { status, text } = await app.send("POST", "/compose/batch", { requests, planner: "context-pilot", ...more });
    expect(status).toBe(200);
    return batchResult.parse(JSON.parse(text)).answers.map((each) => {
      if (!("answer" in each)) throw new Error(JSON.stringify(each));
      return [names[each.index], each.answer.blocks.map(({ memory_id }) => Number(memory_id))];
    });
  };
  const composed = async (name: Name, more: object = {}) => {
    const { blocks, plan } = await app.compose(request(name, { policy: "context-pilot", ...more }));
    return { order: blocks.map(({ memory_id }) => Number(memory_id)), cached: plan.expected_cached_tokens };
  };

  it("figure 6: C1, C2 and C3 are known beforehand; then C6, C7 and C8 come one by one", async () => {
    expect(new Map((await batch(["C1", "C2", "C3"])) as [Name, number[]][])).toEqual(
      new Map([
        ["C1", [1, 2, 3]],
        ["C2", [1, 2, 6]],
        ["C3", [1, 4, 0]],
      ]),
    );
    expect((await composed("C6")).order).toEqual([1, 2, 4]);
    expect((await composed("C7")).order).toEqual([5, 7, 8]);
    expect((await composed("C8")).order).toEqual([1, 2, 9]);
  });

  it("figure 7: on that tree a batch of C6, C3, C7 and C8 runs as C6, C8, C3, C7", async () => {
    await batch(["C1", "C2", "C3"]);
    expect(await batch(["C6", "C3", "C7", "C8"])).toEqual([
      ["C6", [1, 2, 4]],
      ["C8", [1, 2, 9]],
      ["C3", [1, 4, 0]],
      ["C7", [5, 7, 8]],
    ]);
  });

  it("known beforehand and never sent, they order what comes and are expected in no cache", async () => {
    await batch(["C1", "C2", "C3"], { warm_start: true });
    expect(await composed("C6")).toEqual({ order: [1, 2, 4], cached: 0 });
    expect((await composed("C8")).cached).toBeGreaterThan(0);
  });

  it("follows what the engine evicts, and what is forgotten", async () => {
    const requests = (["C1", "C2", "C3"] as const).map((name) => request(name, { request_id: name }));
    await app.send("POST", "/compose/batch", { requests, planner: "context-pilot" });
    await app.send("POST", "/evict", { request_ids: ["C1", "C2"] });
    expect((await composed("C6", { dry_run: true })).order).toEqual([1, 4, 2]);
    await app.send("DELETE", "/users/ada/memories/1");
    expect((await composed("C6", { dry_run: true })).order).toEqual([2, 4]);
  });

  it("is each user's own, and each agent's", async () => {
    await batch(["C1", "C2", "C3"]);
    expect((await composed("C6", { user_id: "bo" })).order).toEqual([2, 1, 4]);
    expect((await composed("C6", { agent_id: "coder" })).order).toEqual([2, 1, 4]);
  });
});
