import { describe, expect, it } from "vitest";
import { explainResult } from "../../../src/http/contracts/explain-contract.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { rowCounts } from "./stored-rows.js";

const SECRET = "Ada hides the key under the third flower pot";
const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const key = { id: "m-key", memory: SECRET };

describe("GET /requests/{request_id}/explain", () => {
  const app = servedApp({ environment: { MEMPREFIX_CACHE_TTL_SECONDS: "300" } });
  const explain = async (path: string) => {
    const exchange = await app.send("GET", path);
    expect(exchange).toMatchObject({ status: 200, contentType: "application/json" });
    expect(exchange.text).not.toContain(SECRET);
    const json: unknown = JSON.parse(exchange.text);
    const explanation = explainResult.parse(json);
    expect(explanation).toEqual(json);
    return explanation;
  };
  // The question says what a memory says, which would not be given again.
  const asked = { user_id: "ada", query: SECRET, policy: "retrieval", dedupe: "exact" };
  const compose = (request_id: string, memories: readonly object[], more: object = {}) =>
    app.compose({ ...asked, request_id, memories, ...more });

  it("says what a prompt missed, why, and which one it continued, in words and in fields", async () => {
    await compose("r 1", [tea, key]);
    const { plan } = await compose("r/2", [key, tea]);
    const before = rowCounts(app.database);
    const explanation = await explain("/requests/r%2F2/explain?user_id=ada");
    expect(explanation).toMatchObject({
      request_id: "r/2",
      total_tokens: plan.total_tokens,
      expected_cached_tokens: plan.expected_cached_tokens,
      reported_cached_tokens: null,
      miss: { cause: "memories_changed", tokens: expect.any(Number) },
      continued: { request_id: "r 1", is_evicted: false, reported_cached_tokens: null },
    });
    expect(explanation.miss).toEqual(plan.miss);
    expect(explanation.words).toContain(`Missed: ${plan.miss?.tokens} tokens, cause: memories changed.`);
    expect(rowCounts(app.database)).toEqual(before);
  });

  it("says what the engine reported", async () => {
    await compose("r1", [tea]);
    await compose("r2", [tea]);
    await app.send("POST", "/feedback", { user_id: "ada", request_id: "r2", cached_tokens: 4_000 });
    expect(await explain("/requests/r2/explain?user_id=ada")).toMatchObject({
      reported_cached_tokens: expect.any(Number),
      miss: null,
    });
  });

  it("keeps to the agent that is named", async () => {
    await compose("r1", [tea], { agent_id: "coach" });
    expect(await explain("/requests/r1/explain?user_id=ada&agent_id=coach")).toMatchObject({
      miss: null,
      continued: null,
    });
  });

  it.each([
    ["/requests/r9/explain?user_id=ada", 404, "request_id"],
    ["/requests/r1/explain?user_id=bob", 404, "request_id"],
    ["/requests/r1/explain?user_id=ada&agent_id=coach", 404, "request_id"],
    ["/requests/r1/explain", 422, "user_id"],
    ["/requests/r1/explain?user_id=", 422, "user_id"],
    ["/requests/r1/explain?user_id=ada&conversation_id=c", 422, "conversation_id"],
    ["/requests/%E2%82%AC/explain?user_id=ada", 422, "request_id"],
  ])("refuses %s, naming the field", async (path, status, field) => {
    await compose("r1", [tea]);
    const problem = problemOf(await app.send("GET", path));
    expect(problem.status).toBe(status);
    expect(problem.errors?.map((error) => error.field)).toEqual([field]);
    expect(app.faults).toEqual([]);
  });
});
