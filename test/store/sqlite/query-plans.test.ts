import { afterAll, beforeAll, expect, it } from "vitest";
import type { NodeId, TurnId } from "../../../src/core/index.js";
import type { Database, Statement } from "../../../src/store/database.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { Connection } from "../../../src/store/sqlite/connection.js";
import { SqliteDatabase } from "../../../src/store/sqlite/database.js";
import { openFile } from "../../../src/store/sqlite/open.js";
import { ComposedUsers, conversationId, memoryId, NOW, requestId, scopeOf } from "../composed-users.js";

/** All statements that a store sends, by what it does. */
const sent = new Map<string, Set<string>>();
let connection: Connection;
let database: Database;

/** Does something with the store, and keeps what is sent meanwhile. */
async function watched(
  name: string,
  work: (users: ComposedUsers) => Promise<unknown>,
  users: ComposedUsers,
): Promise<void> {
  const texts = keptTexts(name);
  const [read, run] = [Connection.prototype.read, Connection.prototype.run];
  Connection.prototype.read = function <R extends object>(
    this: Connection,
    ...[text, values]: Parameters<Connection["read"]>
  ) {
    texts.add(text);
    return read.call(this, text, values) as R[];
  };
  Connection.prototype.run = function (this: Connection, statement: Statement) {
    texts.add(statement.text);
    run.call(this, statement);
  };
  try {
    await work(users);
  } finally {
    Object.assign(Connection.prototype, { read, run });
  }
}

function keptTexts(name: string): Set<string> {
  const texts = sent.get(name) ?? new Set<string>();
  sent.set(name, texts);
  return texts;
}

function planOf(text: string): readonly string[] {
  const values = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [at + 1, null]));
  const plan = connection.sqlite.prepare(`explain query plan ${text}`).all(values);
  return (plan as { detail: string }[]).map(({ detail }) => detail);
}

/** What a statement goes through from beginning to end, without an index. */
function scansOf(text: string): readonly string[] {
  return planOf(text).filter((detail) => /^SCAN (?!json_each|served|CONSTANT ROW)/.test(detail));
}

const ana = scopeOf("ana");

beforeAll(async () => {
  connection = openFile(":memory:");
  database = new SqliteDatabase(connection, () => true, null);
  const users = new ComposedUsers(storeIn(database));
  const { store } = users;
  const said = { requestId: "r1", question: "Well?", memories: { m1: "Ana likes tea." }, conversation: "c" };
  await watched("compose", () => users.compose(ana, said), users);
  const scopeId = await users.numberOf(ana);
  await watched("compose again", () => users.compose(ana, { ...said, requestId: "r2", question: "And?" }), users);
  await watched("single prompt", () => users.compose(ana, { requestId: "r3", question: "Well?", memories: {} }), users);
  await watched("report", () => users.report(ana, "r2", { cachedTokens: 1 }), users);
  await watched("eviction", () => users.evict(ana, ["r2"]), users);
  await watched("withdrawal", () => users.withdraw(ana, "r3"), users);
  const reads: Readonly<Record<string, () => Promise<unknown>>> = {
    find: () => store.find(ana),
    "repeated request": () => store.findRequest(scopeId, requestId("r2")),
    conversation: () => store.loadConversation(scopeId, conversationId("c")),
    history: () => store.findHistory(scopeId, conversationId("c")),
    continued: () => store.findContinued(scopeId, requestId("r2")),
    response: () => store.findResponse(scopeId, "resp"),
    "kept response": () => store.keepResponse(scopeId, requestId("r2"), "resp", "conv"),
    live: () => store.findLiveRequests("default", [requestId("r1")]),
    served: () => store.countServedSince(scopeId, 1 as NodeId, 0 as TurnId, 9),
    reported: () => store.findReportedBefore(scopeId, 2 as TurnId),
    worker: () => store.findWorker(scopeId, 1 as TurnId),
    samples: () => store.prompts.firstTokenTimes("vllm", 10, 10),
    "sample count": () => store.prompts.countFirstTokenTimes("vllm"),
    "kept sample": () =>
      store.prompts.keepFirstTokenTime("vllm", scopeId, 1 as TurnId, { uncachedTokens: 1, cachedTokens: 1, ms: 1 }),
    pending: () => store.pendingInSource(ana),
    scopes: () => store.scopesOf(ana),
  };
  for (const [name, read] of Object.entries(reads)) await watched(name, read, users);
  await watched("export", () => store.exportUser(ana), users);
  await watched("forgetting", () => users.forget(ana, "m1"), users);
  await watched("expiry", () => users.expire(ana, NOW + 1), users);
  await watched("deletion", () => users.deleteUser(ana), users);
  await watched("source", () => store.deletedFromSource(ana, memoryId("m1")), users);
});
afterAll(() => database.close());

it("what a store does with one user passes through no table from beginning to end", () => {
  expect(sent.size).toBeGreaterThan(25);
  const scans = [...sent].flatMap(([name, texts]) =>
    [...texts].flatMap((text) => scansOf(text).map((scan) => `${name}: ${scan}: ${text}`)),
  );
  expect(scans).toEqual([]);
});

it("a deletion passes through a user's messages once, not once for each turn", () => {
  const texts = [...(sent.get("forgetting") ?? [])];
  const deletions = texts.filter((text) =>
    text.startsWith("delete from messages where scope_id = $1 and conversation_id = ''"),
  );
  expect(deletions).toHaveLength(2);
  for (const text of deletions) expect(planOf(text).join()).not.toContain("CORRELATED");
});
