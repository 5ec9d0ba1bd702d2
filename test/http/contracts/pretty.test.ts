import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";

describe("?pretty", () => {
  const app = servedApp();
  const asked = { user_id: "ana", request_id: "r", query: "Tea?", memories: [] };
  const routes: readonly (readonly [method: string, path: string])[] = [
    ["POST", "/compose"],
    ["GET", "/healthz"],
    ["GET", "/users/ana/index"],
    ["GET", "/users/ana/index?agent_id=coach"],
    ["GET", "/user/index?user_id=ana"],
    ["GET", "/users/ana/export"],
    ["GET", "/user/export?user_id=ana"],
    ["GET", "/requests/r/explain?user_id=ana"],
    ["GET", "/request/explain?user_id=ana&request_id=r"],
    ["DELETE", "/user/memory?user_id=ana&memory_id=m"],
    ["DELETE", "/users/ana/memories/m"],
    ["DELETE", "/user?user_id=ana"],
    ["DELETE", "/users/ana"],
  ];

  it.each(routes)("indents the answer of %s %s, and changes nothing else", async (method, path) => {
    await app.compose(asked);
    const body = method === "POST" ? asked : undefined;
    for (const word of ["pretty", "pretty=1"]) {
      const { status, text } = await app.send(method, `${path}${path.includes("?") ? "&" : "?"}${word}`, body);
      expect(status).toBe(200);
      expect(text).toBe(JSON.stringify(JSON.parse(text), null, 2));
      expect(text).toContain("\n");
    }
  });
});
