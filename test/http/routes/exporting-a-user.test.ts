import { describe, expect, it } from "vitest";
import type { z } from "zod";
import type { RequestId, UserId } from "../../../src/core/index.js";
import { exportResult } from "../../../src/http/contracts/user-contract.js";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import { type ServedApp, servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { storedRows } from "./stored-rows.js";

type Exported = z.output<typeof exportResult>;

async function exported(app: ServedApp, user: string): Promise<Exported> {
  const { status, text } = await app.send("GET", `/users/${user}/export`);
  expect(status).toBe(200);
  return exportResult.parse(JSON.parse(text));
}

/** The tables of an export, and what its rows say: all but digests, and numbers that count other users and the tenant. */
const EXPORTED = {
  blocks: ["label", "text", "tokens", "superseded_by"],
  memories: ["memory_id", "label", "current"],
  index_nodes: ["id", "parent", "run", "position", "uses", "last_used", "used_at", "tokens"],
  conversations: ["id", "used_at", "forgotten_at"],
  turns: ["id", "conversation_id", "at", "section", "response_id", "engine_conversation"],
  messages: ["turn_id", "conversation_id", "message"],
  requests: ["turn_id", "id", "at", "answer", "report", "evicted"],
  prompts: ["turn_id", "request_id", "at", "prompt_tokens", "expected_tokens", "reported_cached_tokens"],
} as const;

const ADA = "ada" as UserId;
const NOTHING = { user_id: "ada", scopes: [], forgotten_memories: [] };
const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const key = { id: "m-key", memory: "Ada hides the key under the flower pot" };
const call = { id: "call_1", type: "function", function: { name: "lookUp", arguments: '{"whichKey":1}' } };
const composed = {
  user_id: "ada",
  conversation_id: "c",
  request_id: "r-1",
  system: "Be brief",
  messages: [
    { role: "user", content: "Hello" },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: "Found." },
    { role: "user", content: "Where is the key?" },
  ],
  memories: [tea, key],
};

describe("GET /users/{user_id}/export", () => {
  const app = servedApp();

  async function live() {
    await app.compose(composed);
    await app.compose({ ...composed, request_id: "r-2", conversation_id: null, policy: "knowledge-tree" });
    await app.compose({ ...composed, agent_id: "planner", policy: "access-frequency" });
    await app.compose({ ...composed, user_id: "bob", system: "Be long" });
    await app.send("POST", "/feedback", { user_id: "ada", request_id: "r-1", cached_tokens: 1, prompt_tokens: 50 });
    await app.send("DELETE", "/users/ada/memories/m-gone");
    const { chats } = app.memprefix;
    const answered = { id: "resp_1", requestId: "r-1" as RequestId, engineConversation: null, continued: null };
    await chats.responses.keep(ADA, null, answered);
  }

  it("holds no digest, by which a short text could be guessed", async () => {
    await live();
    expect(JSON.stringify(await exported(app, "ada"))).not.toMatch(/[\w-]{43}/);
  });

  it("holds every row of the user, of every agent", async () => {
    await live();
    const { scopes } = await exported(app, "ada");
    expect(scopes.map(({ agent_id }) => agent_id)).toEqual([null, "planner"]);
    const rows = storedRows(app.database);
    const numbers = (rows.get("scopes") ?? []).filter((row) => row["user_id"] === "ada").map((row) => row["id"]);
    for (const [at, { tables }] of scopes.entries()) {
      // Nothing waits to be written (test/http/routes/waiting-writes.test.ts).
      expect(Object.keys(tables)).toEqual([...Object.keys(EXPORTED), "writes"]);
      for (const [name, columns] of Object.entries(EXPORTED)) {
        const given = tables[name] ?? [];
        const stored = rows.get(name)?.filter((row) => row["scope_id"] === numbers[at]);
        if (stored !== undefined) expect(given, name).toHaveLength(stored.length);
        expect(given.length, name).toBeGreaterThan(0);
        for (const row of given) expect(Object.keys(row), name).toEqual(expect.arrayContaining([...columns]));
      }
    }
  });

  it("names what was forgotten, and nothing of its text", async () => {
    await live();
    await app.send("DELETE", "/users/ada/memories/m-key");
    const answer = await exported(app, "ada");
    expect(answer.forgotten_memories).toEqual(["m-gone", "m-key"]);
    expect(JSON.stringify(answer)).not.toContain("flower pot");
  });

  it("is empty for a user that was never seen, and for one that was forgotten", async () => {
    expect(await exported(app, "ada")).toEqual({ ...NOTHING, source: null });
    await live();
    await app.send("DELETE", "/users/ada");
    expect(await exported(app, "ada")).toEqual({ ...NOTHING, source: null });
  });
});

describe("GET /users/{user_id}/export with a source that another system owns", () => {
  const app = servedApp({ source: () => answeringSource([tea.memory]) });

  it("names it, and says nothing of what it holds", async () => {
    expect((await exported(app, "ada")).source).toEqual({ name: expect.any(String), memories: null });
  });
});

describe("GET /users/{user_id}/export with the embedded Mem0", () => {
  const app = servedApp({ source: (dataDir) => openEmbeddedMem0({ dataDir }) });

  it("holds the memories there, of every agent, until the user is forgotten", async () => {
    const added = { user_id: "ada", memories: [key.memory], metadata: { from: "chat" } };
    await app.send("POST", "/memories", added);
    await app.send("POST", "/memories", { ...added, agent_id: "day planner", memories: [tea.memory] });
    await app.send("POST", "/memories", { ...added, user_id: "bob" });
    const { source } = await exported(app, "ada");
    const kept = { created_at: expect.any(String), metadata: { from: "chat" } };
    expect(source?.name).toBe("embedded");
    expect(source?.memories?.toSorted((a, b) => a.memory.localeCompare(b.memory))).toMatchObject([
      { ...kept, memory: tea.memory, agent_id: "day planner" },
      { ...kept, memory: key.memory, agent_id: null },
    ]);
    await app.send("DELETE", "/users/ada");
    expect(await exported(app, "ada")).toEqual({ ...NOTHING, source: { name: "embedded", memories: [] } });
  });
});
