import { describe, expect, it } from "vitest";
import { callerOf } from "../guards/callers.js";
import { problemOf, servedApp } from "../server/served-app.js";

const VIEWS = ["summary", "requests", "request"];

describe("who may read figures", () => {
  const app = servedApp();

  it("is every valid key of the tenant, for its own tenant, and nobody without one", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const body = { user_id: "ana", query: "Where?", memories: [], request_id: "r1" };
    expect((await acme.send("POST", "/compose", body)).status).toBe(200);
    for (const view of VIEWS) expect(problemOf(await app.send("GET", `/usage/${view}`))).toMatchObject({ status: 401 });
    expect((await app.send("GET", "/dashboard")).status).toBe(200);
    const requestsOf = async (caller: typeof acme) =>
      JSON.parse((await caller.send("GET", "/usage/requests")).text) as { requests: object[] };
    expect((await requestsOf(acme)).requests).toMatchObject([{ request_id: "r1" }]);
    expect((await requestsOf(other)).requests).toEqual([]);
    const found = await other.send("GET", "/usage/request?user_id=ana&request_id=r1");
    expect(found.status).toBe(404);
  });
});
