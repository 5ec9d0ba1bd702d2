import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import type { UserId } from "../../../src/core/index.js";
import type { RequestLog } from "../../../src/http/requests/request.js";
import type { MemorySource } from "../../../src/memory/memory-source.js";
import { StoreUnavailableError } from "../../../src/service/base/errors.js";
import { newApiKey } from "../../../src/service/base/tenant.js";
import { StoredApiKeys } from "../../../src/store/keys.js";
import { storeIn } from "../../../src/store/sql-store.js";
import type { Connection } from "../../../src/store/sqlite/connection.js";
import { SqliteDatabase } from "../../../src/store/sqlite/database.js";
import { openFile } from "../../../src/store/sqlite/open.js";
import { openService } from "../../service/compose/service-fixture.js";
import { storedCounts } from "../../stored-counts.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { KNOWN_MS, sendWith } from "../guards/callers.js";
import { type ShortTimes, type StartedApp, startApp } from "../server/started-app.js";
import { heldSource } from "./answering-source.js";
import { openAiEngine } from "./openai-engine.js";

const TEA = "Ada drinks green tea";
type Message = { readonly role: "user" | "assistant"; readonly content: string };

/** The app on a socket, over a database that a test has its hands on; a fresh one for every test. */
function appOnDatabase(
  source: MemorySource | null,
  more: Readonly<Record<string, string>> = {},
  times: ShortTimes = {},
) {
  const engine = openAiEngine();
  const log: RequestLog[] = [];
  const faults: unknown[] = [];
  const newFolder = temporaryFolders();
  let dataDir = "";
  let connection: Connection;
  let keys: StoredApiKeys;
  let app: StartedApp;
  beforeEach(async () => {
    dataDir = newFolder();
    connection = openFile(join(dataDir, "memprefix.db"));
    const database = new SqliteDatabase(connection, () => false, null);
    keys = new StoredApiKeys(database);
    // One user's state at a time is in memory.
    const bounds = { maxWaitingPerUser: 2, maxWorkingBytes: 1 };
    const memprefix = openService({ store: storeIn(database), source, now: () => Date.now(), ...bounds });
    const settings = readSettings({ MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_UPSTREAM_URL: engine.url, ...more });
    app = await startApp(settings, null, { log, faults }, { memprefix, keys }, times);
  });
  afterEach(async () => {
    await app.close();
    log.length = 0;
    faults.length = 0;
  });
  const send = (path: string, body: unknown) => sendWith(app, {}, "POST", path, body);
  return {
    engine,
    log,
    faults,
    send,
    chat: (messages: readonly Message[], memprefix: object = {}, own: object = {}) =>
      send("/v1/chat/completions", { model: "stub-1", messages, ...own, memprefix: { user_id: "ada", ...memprefix } }),
    metrics: async () => (await sendWith(app, {}, "GET", "/metrics")).text,
    get memprefix() {
      return app.memprefix;
    },
    get base() {
      return app.base;
    },
    get keys() {
      return keys;
    },
    get sqlite() {
      return connection.sqlite;
    },
    get file() {
      return join(dataDir, "memprefix.db");
    },
  };
}

const question = (content: string): Message => ({ role: "user", content });
const memories = [{ id: "m-1", memory: TEA }];

/** Keeps the store from its work; gives back what makes it well again. */
type Ailment = (app: ReturnType<typeof appOnDatabase>) => Promise<() => void>;

const AILMENTS: readonly (readonly [what: string, reason: string, make: Ailment])[] = [
  [
    "cannot be written",
    "store_read_only",
    async ({ sqlite }) => {
      sqlite.pragma("query_only = ON");
      return () => sqlite.pragma("query_only = OFF");
    },
  ],
  [
    "has no room",
    "store_full",
    async ({ sqlite }) => {
      // No page is free.
      sqlite.exec("vacuum");
      sqlite.pragma(`max_page_count = ${sqlite.pragma("page_count", { simple: true })}`);
      return () => sqlite.pragma("max_page_count = 1073741823");
    },
  ],
  [
    "is locked by somebody else",
    "store_busy",
    async ({ file }) => {
      const other = new Database(file);
      other.exec("begin immediate");
      return () => {
        other.exec("rollback");
        other.close();
      };
    },
  ],
  [
    "holds a user's rows that cannot be read",
    "store_damaged",
    async (app) => {
      // Another user's state takes the place of this one's in memory.
      await app.send("/compose", { user_id: "bo", query: "Which tea?", memories: [] });
      const isAdas = "scope_id = (select id from scopes where user_id = 'ada')";
      const changes = app.sqlite.prepare(`select changes from changes where ${isAdas}`).pluck().get();
      const write = app.sqlite.prepare(`update changes set changes = ? where ${isAdas}`);
      write.run("{");
      return () => write.run(changes);
    },
  ],
  [
    "lacks a table",
    "fault",
    async ({ sqlite }) => {
      sqlite.exec("alter table turns rename to lost");
      return () => sqlite.exec("alter table lost rename to turns");
    },
  ],
];

describe.each(AILMENTS)("a chat while the store %s", (_what, reason, make) => {
  const app = appOnDatabase(null);
  /** More than what room there is left in pages. */
  const many = Array.from({ length: 20 }, (_, n) => ({
    id: `long-${n}`,
    memory: `${n}: ${"Ada reads. ".repeat(200)}`,
  }));

  it("goes to the engine as it came, and the conversation goes on from it once the store is well", async () => {
    const { engine } = app;
    const first = [question("Which tea?")];
    const talk = { conversation_id: "c" };
    expect((await app.chat(first, { ...talk, memories })).status).toBe(200);
    await vi.waitFor(() => expect(app.memprefix.load.jobs).toBe(0));
    const cure = await make(app);
    const second = [...first, { role: "assistant", content: "Indeed." } as const, question("And then?")];
    const answer = await app.chat(second, { ...talk, memories: many }, { temperature: 0.5 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-memprefix-warnings")).toBe("not_composed");
    expect(answer.headers.get("x-memprefix-not-composed")).toBe(reason);
    expect(answer.headers.get("x-memprefix-request-id")).toBeNull();
    expect(JSON.parse(answer.text)).toMatchObject({ choices: [{ message: { content: "Indeed." } }] });
    // Before it, a composed prompt may have been sent that could not be stored.
    expect(JSON.parse(engine.requests.at(-1)?.raw ?? "")).toEqual({
      model: "stub-1",
      messages: second,
      temperature: 0.5,
    });
    expect(app.log.at(-1)).toMatchObject({ status: 200, notComposed: reason, warnings: ["not_composed"] });
    expect(app.faults).toHaveLength(reason === "store_busy" ? 0 : 1);
    if (reason.startsWith("store_") && reason !== "store_busy")
      expect(app.faults[0]).toBeInstanceOf(StoreUnavailableError);
    expect(await app.metrics()).toContain(`memprefix_not_composed_chats_total{reason="${reason}"} 1`);

    cure();
    const third = [...second, { role: "assistant", content: "Indeed." } as const, question("And after that?")];
    const composed = await app.chat(third, { ...talk, memories });
    expect(composed.headers.get("x-memprefix-warnings")).toBeNull();
    const fourth = [...third, { role: "assistant", content: "Indeed." } as const, question("And at last?")];
    await app.chat(fourth, { ...talk, memories });
    const sent = engine.requests.map(({ body }) => body.messages);
    const [one, three, four] = [sent[0], ...sent.slice(-2)];
    expect(three?.slice(0, 1)).toEqual(one);
    expect(three?.slice(1, 4)).toEqual(second.slice(1).concat({ role: "assistant", content: "Indeed." }));
    expect(four?.slice(0, three?.length)).toEqual(three);
  });
});

describe("a chat whose user's turn does not come", () => {
  const held = heldSource([TEA]);
  const app = appOnDatabase(held, {}, { composeTimeoutMs: 200 });
  beforeEach(() => void held.queries.splice(0));

  it("goes on as it came after a while, and what nobody waits for is not composed", async () => {
    const slow = app.send("/compose", { user_id: "ada", query: "Which tea?" });
    await vi.waitFor(() => expect(held.queries).toHaveLength(1));
    const answer = await app.chat([question("And then?")]);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-memprefix-not-composed")).toBe("timeout");
    expect(app.engine.requests.map(({ body }) => body.messages)).toEqual([[question("And then?")]]);
    const other = app.chat([question("Which tea?")], { user_id: "bo", memories });
    expect((await other).headers.get("x-memprefix-not-composed")).toBeNull();
    held.letGo();
    expect((await slow).status).toBe(200);
    await vi.waitFor(() => expect(app.memprefix.load.jobs).toBe(0));
    expect(storedCounts(await app.memprefix.exportUser("ada" as UserId)).turns).toBe(1);
    expect(app.faults).toEqual([]);
  });

  it("because as many wait as may goes on at once", async () => {
    const slow = [1, 2].map(() => app.send("/compose", { user_id: "ada", query: "Which tea?" }));
    await vi.waitFor(() => expect(app.memprefix.load.jobs).toBe(2));
    const answer = await app.chat([question("And then?")]);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-memprefix-not-composed")).toBe("user_queue");
    expect((await app.send("/compose", { user_id: "ada", query: "Which tea?" })).status).toBe(429);
    const pump = setInterval(held.letGo, 5);
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([200, 200]);
    clearInterval(pump);
  });
});

describe("a chat whose answer has come", () => {
  const app = appOnDatabase(null);

  it.each([true, false])("is answered whole where its usage cannot be kept, streamed: %s", async (stream) => {
    app.engine.behave((_request, response, usage) => {
      app.sqlite.pragma("query_only = ON");
      const whole = { choices: [{ index: 0, message: { content: "Indeed." }, finish_reason: "stop" }], usage };
      if (!stream) return void response.setHeader("content-type", "application/json").end(JSON.stringify(whole));
      response.setHeader("content-type", "text/event-stream");
      response.end(`data: ${JSON.stringify(whole)}\n\ndata: [DONE]\n\n`);
    });
    const answer = await app.chat([question("Which tea?")], { memories }, { stream });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-memprefix-request-id")).toBe("generated-1");
    const { text } = answer;
    expect(text).toContain("Indeed.");
    if (stream) expect(text).toMatch(/\[DONE\]\n\n$/);
    await vi.waitFor(() => expect(app.faults).toHaveLength(1));
    expect(app.faults[0]).toMatchObject({ name: "StoreUnavailableError", fault: "read-only" });
    app.sqlite.pragma("query_only = OFF");
  });
});

describe("API keys that cannot be read", () => {
  const app = appOnDatabase(null);

  /** Damages the pages on which keys stand, as a bad disk would. */
  function damageKeys(): void {
    const { sqlite, file } = app;
    const pages = sqlite.prepare("select rootpage from sqlite_schema where tbl_name = 'keys' and rootpage > 0");
    const size = Number(sqlite.pragma("page_size", { simple: true }));
    sqlite.pragma("wal_checkpoint(TRUNCATE)");
    // By another process: closing the file here would let go of SQLite's locks on it.
    for (const page of pages.pluck().all()) {
      const place = [`bs=${size}`, `seek=${Number(page) - 1}`, "count=1", "conv=notrunc"];
      expect(spawnSync("dd", ["if=/dev/zero", `of=${file}`, ...place]).status).toBe(0);
    }
    // After a write of somebody else's, pages are read anew.
    const other = new Database(file);
    other.exec("create table elsewhere (x); drop table elsewhere");
    other.close();
  }

  it("are none where there were none: chats go on", async () => {
    await app.chat([question("Which tea?")], { memories });
    damageKeys();
    expect((await app.chat([question("Which tea?")], { memories })).status).toBe(200);
  });

  it("keep everybody out where they are in use", async () => {
    const { id, key, secretDigest } = newApiKey();
    const added = { id, tenant: "acme", secretDigest, label: null, createdAt: 1 };
    await app.keys.add(added, "secret");
    const body = { messages: [question("Which tea?")], user: "ada" };
    const chat = () => sendWith(app, { "x-api-key": key }, "POST", "/v1/chat/completions", body);
    expect((await chat()).status).toBe(200);
    damageKeys();
    await setTimeout(KNOWN_MS);
    const refused = await chat();
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.text)).toMatchObject({ error: { type: "server_error" } });
    expect(app.engine.requests).toHaveLength(1);
  });
});
