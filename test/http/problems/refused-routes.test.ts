import { describe, expect, it } from "vitest";
import { rowCounts } from "../routes/stored-rows.js";
import { problemOf, servedApp } from "../server/served-app.js";

const SECRET = "Ada hides the key under the third flower pot";

describe("a bad request to a companion of /compose names the field and writes nothing", () => {
  const app = servedApp();

  it.each([
    ["POST", "/memories", { user_id: "ada" }, "memories"],
    ["POST", "/memories", { memories: [SECRET] }, "user_id"],
    ["POST", "/memories", { user_id: "ada", memories: [SECRET, ""] }, "memories[1]"],
    ["POST", "/memories", { user_id: "ada", memories: [`${SECRET}\0`] }, "memories[0]"],
    ["POST", "/memories", { user_id: "ada", memories: Array.from({ length: 5_000 }, () => SECRET) }, "memories"],
    ["POST", "/memories", { user_id: "ada", memories: [SECRET], metadata: { note: "\0" } }, "metadata"],
    ["POST", "/evict", { request_ids: ["r-1", ""] }, "request_ids[1]"],
    ["POST", "/evict", { request_ids: [], user_id: "ada" }, "user_id"],
    ["POST", "/feedback", { user_id: "ada", request_id: "r-1", tokens: 1 }, "tokens"],
    ["GET", "/users/%20/export", undefined, "user_id"],
    ["GET", "/requests/r/explain?user_id=ada&agent=planner", undefined, "agent"],
    ["DELETE", `/users/ada/memories/${"m".repeat(1_001)}`, undefined, "memory_id"],
    ["DELETE", "/users/%00/memories/m-1", undefined, "user_id"],
  ])("%s %s (%o)", async (method, path, body, field) => {
    const before = rowCounts(app.database);
    const exchange = await app.send(method, path, body);
    const problem = problemOf(exchange);
    expect(problem.status).toBe(422);
    expect([...new Set(problem.errors?.map((error) => error.field))]).toEqual([field]);
    expect(exchange.text).not.toContain(SECRET);
    expect(rowCounts(app.database)).toEqual(before);
    expect(app.faults).toEqual([]);
  });

  it.each(["/memories", "/evict", "/feedback"])("POST %s with what is no JSON", async (path) => {
    expect(problemOf(await app.send("POST", path, "{"))).toMatchObject({ status: 400, errors: [{ field: "body" }] });
    expect(problemOf(await app.send("POST", path, "{}", "text/plain"))).toMatchObject({
      status: 415,
      errors: [{ field: "content-type" }],
    });
  });

  it("says that memories cannot be added where there is no source", async () => {
    const problem = problemOf(await app.send("POST", "/memories", { user_id: "ada", memories: [SECRET] }));
    expect(problem).toMatchObject({ status: 501, title: "Not supported" });
    expect(JSON.stringify(problem)).not.toContain(SECRET);
  });

  it("says that feedback is about a request that the user never made", async () => {
    const problem = problemOf(await app.send("POST", "/feedback", { user_id: "ada", request_id: "r-1" }));
    expect(problem).toMatchObject({ status: 404, errors: [{ field: "request_id" }] });
  });
});
