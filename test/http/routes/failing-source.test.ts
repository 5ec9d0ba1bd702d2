import { describe, expect, it } from "vitest";
import {
  type MemorySource,
  MemorySourceError,
  type MemorySourceFailure,
  withDeadline,
} from "../../../src/memory/memory-source.js";
import { problemOf, servedApp } from "../server/served-app.js";

const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const paris = { id: "m-paris", memory: "Ada lives in Paris" };
const DEADLINE_MS = 200;

/** A source of which every call comes to the same end; `hang`: to none. */
function sourceThat(end: MemorySourceFailure | "hang"): MemorySource {
  const call = <T>(): Promise<T> =>
    end === "hang" ? new Promise<T>(() => {}) : Promise.reject(new MemorySourceError("shaky", end));
  return {
    name: "shaky",
    owned: true,
    search: () => call(),
    add: () => call(),
    delete: () => call(),
    deleteUser: () => call(),
    close: async () => {},
  };
}

const failures: readonly (readonly [string, MemorySourceFailure | "hang", number, RegExp])[] = [
  ["that hangs", "hang", 504, /did not answer within 200 ms/],
  ["that cannot be reached", { kind: "unreachable", cause: "ECONNREFUSED" }, 502, /could not be reached/],
  ["that refuses", { kind: "refused", status: 401, body: "secret" }, 502, /status 401/],
  ["that answers nonsense", { kind: "unreadable", cause: "no JSON" }, 502, /unreadable answer/],
];

describe.each(failures)("a memory source %s", (_what, end, status, says) => {
  const app = servedApp({
    source: () => withDeadline(sourceThat(end), { searchMs: DEADLINE_MS, writeMs: DEADLINE_MS }),
  });

  it("costs a prompt its new memories, and not more", async () => {
    await app.compose({ user_id: "ada", query: "one", memories: [tea, paris] });
    const answer = await app.compose({ user_id: "ada", query: "Which tea does Ada drink?" });
    expect(answer.warnings).toMatchObject([{ code: "memory_source_failed", message: expect.stringMatching(says) }]);
    expect(answer.warnings[0]?.message).not.toContain("secret");
    expect(answer.blocks.map(({ memory_id }) => memory_id)).toContain("m-tea");
    expect(answer.messages[0]?.["content"]).toContain(tea.memory);
  });

  it("leaves a user of whom nothing is known with the plain question", async () => {
    const answer = await app.compose({ user_id: "ada", query: "Which tea?" });
    expect(answer.messages).toEqual([{ role: "user", content: "Which tea?" }]);
    expect(answer.warnings).toMatchObject([{ code: "memory_source_failed" }]);
  });

  it("does not matter where the memories come in the request", async () => {
    expect((await app.compose({ user_id: "ada", query: "Which tea?", memories: [tea] })).warnings).toEqual([]);
  });

  it("is a problem where a memory has to be added or deleted", async () => {
    const refused = [
      await app.send("POST", "/memories", { user_id: "ada", memories: [tea.memory] }),
      await app.send("DELETE", "/users/ada/memories/m-tea"),
      await app.send("DELETE", "/users/ada"),
    ];
    for (const exchange of refused) {
      const problem = problemOf(exchange);
      expect(problem.status).toBe(status);
      expect(problem.detail).toMatch(says);
      expect(exchange.text).not.toContain("secret");
    }
    expect(app.faults).toEqual([]);
  });
});
