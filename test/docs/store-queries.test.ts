import { type SpawnSyncOptionsWithStringEncoding, spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Scope } from "../../src/core/index.js";
import type { Database } from "../../src/store/database.js";
import { StoredApiKeys } from "../../src/store/keys.js";
import { openPostgres } from "../../src/store/postgres/open.js";
import { SCHEMA } from "../../src/store/postgres/statements.js";
import { storeIn } from "../../src/store/sql-store.js";
import { DATABASE_FILE, openOwned } from "../../src/store/sqlite/open.js";
import { newDatabase, testServer } from "../postgres/test-server.js";
import { ComposedUsers, NOW, scopeOf } from "../store/composed-users.js";
import { temporaryFolders } from "../temporary-folders.js";
import { readPages } from "./pages.js";

const PAGE = "docs/internals/store.md";
const TABLES = ["scopes", "changes", "conversations", "turns", "messages", "requests", "prompts", "writes", "keys"];

/** The page's queries, by the table that they are shown with. */
const queries = new Map(
  (readPages().find(({ path }) => path === PAGE)?.text ?? "")
    .split(/^### /m)
    .slice(1)
    .map((part) => [part.slice(0, part.indexOf("\n")), /^```sql\n(.*?)^```$/ms.exec(part)?.[1] ?? ""] as const),
);

const ana = scopeOf("ana");
const coach: Scope = { ...ana, agentId: "coach" as Scope["agentId"] };

async function fill(database: Database): Promise<void> {
  const users = new ComposedUsers(storeIn(database));
  const compose = (scope: Scope, requestId: string, question: string, memories: Readonly<Record<string, string>>) =>
    users.compose(scope, { requestId, question, memories, conversation: "trip", system: "Be kind." });
  await compose(ana, "r1", "Where shall we go?", { m1: "Ana likes the sea.", m2: "Bo is a dog." });
  await compose(ana, "r2", "And by train?", { m1: "Ana likes the sea.", m3: "Ana gets seasick." });
  await compose(coach, "r3", "What now?", { m1: "Ana likes the sea." });
  await compose(scopeOf("cy"), "r4", "What now?", { m4: "Cy runs." });
  await users.report(ana, "r1", { promptTokens: 100, cachedTokens: 0 });
  await users.forget(scopeOf("cy"), "m4");
  for (const n of [1, 2]) {
    const write = { queue: "conversation trip", addition: {}, exchanges: 1, requestId: null, at: NOW + n - 1 };
    await storeIn(database).writes.keep(ana, write);
  }
  const text = "update prompts set miss_cause = $1, miss_tokens = $2 where request_id = $3";
  await database.write([
    { text, values: ["evicted", 30, "r1"] },
    { text, values: ["changed", 10, "r2"] },
    { text, values: ["evicted", 12, "r3"] },
  ]);
  await new StoredApiKeys(database).add(
    { id: "k1", tenant: "default", secretDigest: "digest", label: "laptop", createdAt: NOW },
    "secret",
  );
}

const PRINTED: Readonly<Record<string, readonly string[]>> = {
  scopes: ["default|ana|", "default|ana|coach"],
  changes: ["default|ana||3", "default|ana|coach|1", "default|cy||0"],
  conversations: [`cy|trip|${NOW}`],
  turns: [
    "1|<memories>\n- Ana likes the sea.\n- Bo is a dog.\n</memories>",
    "2|<memories>\n- Ana gets seasick.\n</memories>\nMost relevant: Ana likes the sea.",
  ],
  messages: [
    '1|{"role":"user","content":"Where shall we go?"}',
    '2|{"role":"assistant","content":"I see."}',
    '2|{"role":"user","content":"And by train?"}',
    '1|{"role":"user","content":"What now?"}',
  ].sort(),
  requests: ["ana|r2", "ana|r3"],
  prompts: ["changed|1|10", "evicted|2|42", "first_prompt|1|6"],
  writes: [`ana|conversation trip|2|${NOW}`],
  keys: ["k1|default|laptop"],
};

function run(
  command: string,
  args: readonly string[],
  options: Partial<SpawnSyncOptionsWithStringEncoding> = {},
): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { ...options, encoding: "utf8" });
  expect([status, stderr, error]).toEqual([0, "", undefined]);
  return stdout;
}

const has = (command: string) => spawnSync(command, ["--version"]).status === 0;
const server = await testServer();
const newDirectory = temporaryFolders();

interface Opened {
  readonly database: Database;
  /** Runs a query with the command. */
  readonly print: (query: string) => string;
}

async function openFile(): Promise<Opened> {
  const directory = newDirectory();
  const { database } = openOwned(directory);
  return { database, print: (query) => run("sqlite3", ["-readonly", join(directory, DATABASE_FILE), query]) };
}

async function openServer(): Promise<Opened> {
  const url = await newDatabase(server.url ?? "");
  const env = { ...process.env, PGOPTIONS: `-c search_path=${SCHEMA}` };
  return {
    database: await openPostgres(url),
    print: (query) => run("psql", [url, "-X", "-A", "-t", "-c", query], { env }),
  };
}

const COMMANDS = [
  ["sqlite3", has("sqlite3"), openFile],
  ["psql", has("psql") && server.url !== null, openServer],
] as const;

describe("the queries of the store's page", () => {
  it("are one for each table", () => {
    expect([...queries.keys()]).toEqual(TABLES);
  });

  for (const [command, canRun, open] of COMMANDS)
    it.skipIf(!canRun)(
      `print what is said of them in ${command}, while a service runs${canRun ? "" : " (skipped: no such command, or no server)"}`,
      async () => {
        const { database, print } = await open();
        await fill(database);
        for (const table of TABLES)
          expect(print(queries.get(table) ?? ""), table).toBe(PRINTED[table]?.map((line) => `${line}\n`).join(""));
        await database.close();
      },
    );
});
