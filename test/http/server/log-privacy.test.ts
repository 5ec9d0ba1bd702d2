import { describe, expect, it } from "vitest";
import { type MemorySource, MemorySourceError } from "../../../src/memory/memory-source.js";
import { servedApp } from "./served-app.js";

const MEMORY = "Ada hides the key under the third flower pot";
const QUESTION = "Where on earth did she put it?";
const ANSWER = "I would rather not say";
const TEXTS = [MEMORY, "flower pot", QUESTION, ANSWER];
const question = { role: "user", content: QUESTION };

const failing: MemorySource = {
  name: "failing",
  owned: false,
  search: async () => Promise.reject(new MemorySourceError("failing", { kind: "refused", status: 500, body: MEMORY })),
  add: async () => Promise.reject(new MemorySourceError("failing", { kind: "refused", status: 500, body: MEMORY })),
  delete: async () => false,
  deleteUser: async () => {},
  close: async () => {},
};

describe("the log of requests", () => {
  const app = servedApp({ source: () => failing });

  it("holds no memory text, no question and no answer, whatever happens", async () => {
    const at = { user_id: "ada", conversation_id: "c" };
    const memories = [{ id: "m-1", memory: MEMORY }];
    await app.compose({ ...at, messages: [question], memories });
    await app.compose({
      ...at,
      messages: [question, { role: "assistant", content: ANSWER }, question],
      system: ANSWER,
    });
    const bodies = [
      { ...at, messages: [question, { role: "assistant", content: ANSWER }], memories },
      { ...at, query: QUESTION, memories: MEMORY },
      { ...at, query: QUESTION, memories: [{ id: "m-1", memory: `${MEMORY}\0` }], policy: ANSWER },
      { ...at, query: QUESTION, [MEMORY]: ANSWER },
      `{"query": "${QUESTION}", ${MEMORY}`,
    ];
    for (const body of bodies) expect((await app.send("POST", "/compose", body)).status).toBeGreaterThanOrEqual(400);
    await app.send("POST", "/memories", { user_id: "ada", memories: [MEMORY] });
    await app.send("GET", `/${encodeURIComponent(MEMORY)}?q=${encodeURIComponent(QUESTION)}`);
    await app.send("GET", `/users/${encodeURIComponent(MEMORY)}/export`);
    await app.send("DELETE", `/users/ada/memories/${encodeURIComponent(MEMORY)}`);
    const written = JSON.stringify([app.log, app.faults]);
    expect(TEXTS.filter((text) => written.includes(text) || written.includes(encodeURIComponent(text)))).toEqual([]);
    expect(app.log).toHaveLength(11);
    expect(app.faults).toEqual([]);
  });

  it("says which route took how long and what the prompt came to", async () => {
    await app.compose({ user_id: "ada", request_id: "r-1", query: QUESTION });
    await app.send("GET", "/users/ada/export");
    await app.send("GET", "/nope");
    expect(app.log).toMatchObject([
      {
        method: "POST",
        route: "/compose",
        status: 200,
        requestId: "r-1",
        expectedCachedTokens: 0,
        warnings: ["memory_source_failed"],
      },
      { method: "GET", route: "/users/:user_id/export", status: 200 },
      { method: "GET", status: 404 },
    ]);
    expect(app.log.every(({ ms }) => ms >= 0)).toBe(true);
    expect(app.log[0]?.totalTokens).toBeGreaterThan(0);
  });
});
