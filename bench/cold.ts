/**
 * `npm run bench:cold`: how long a user with 1,000 requests, who is not in memory, takes to load: the scope's state (a snapshot and the
 * records behind it), what planning makes of it, and the turns of the next request's conversation. On SQLite, in whose file the operating
 * system has the pages, and on a PostgreSQL server of the bench's own on this machine. k = 20, from recorded real Mem0 searches; every other
 * user in one conversation of all requests, the others in none. In the environment: `USERS`, `REQUESTS`, `LOADS` of each user. Takes
 * `--data FOLDER` (`recorded-data.ts`).
 *
 * Floor: the snapshot and what stands behind it are read once: at most 255 records, and from 32 on no more characters of changes than the
 * snapshot has; and of the conversation its last 1,000 turns.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConversationId, Scope } from "../src/core/index.js";
import type { JournalDatabase } from "../src/store/journal/journal-database.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { startServer } from "../test/postgres/embedded-server.js";
import { Collections } from "./collections.js";
import { quantile } from "./load-figures.js";
import { neededData } from "./recorded-data.js";

// As it is installed: threads have JavaScript files to load.
const load = (path: string) => import(new URL(`../dist/${path}`, import.meta.url).href);
const { assembleWhereStored } = (await load("cli/assemble.js")) as typeof import("../src/cli/assemble.js");
const { readSettings } = (await load("cli/settings.js")) as typeof import("../src/cli/settings.js");
const { countO200k } = (await load("cli/o200k.js")) as typeof import("../src/cli/o200k.js");
const { DEFAULT_SCOPE_BOUNDS, ScopeState } = (await load("core/index.js")) as typeof import("../src/core/index.js");
const { readComposeOptions } = (await load(
  "service/compose/compose-request.js",
)) as typeof import("../src/service/compose/compose-request.js");
const { JournalStore } = (await load(
  "store/journal/journal-store.js",
)) as typeof import("../src/store/journal/journal-store.js");
const { journalIn } = (await load(
  "store/sqlite/open-journal.js",
)) as typeof import("../src/store/sqlite/open-journal.js");
const { openDatabase } = (await load(
  "store/database/open-database.js",
)) as typeof import("../src/store/database/open-database.js");
const { openPostgres } = (await load(
  "store/postgres/open-postgres.js",
)) as typeof import("../src/store/postgres/open-postgres.js");

const USERS = Number(process.env["USERS"] ?? 8);
const REQUESTS = Number(process.env["REQUESTS"] ?? 1_000);
const LOADS = Number(process.env["LOADS"] ?? 100);
const COMPILED_AFTER_LOADS = 10;
const K = 20;
const CONVERSATION = "one" as ConversationId;
const data = neededData();
const traces = RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
const users = Array.from({ length: USERS }, (_, at) => at);
const isTalking = (user: number) => user % 2 === 1;
const userIdOf = (user: number) => `user-${user}`;

async function ask(environment: Readonly<Record<string, string>>): Promise<void> {
  const settings = readSettings({ MEMSTEM_SOURCE: "none", ...environment });
  const { memstem } = await assembleWhereStored(settings);
  for (const user of users) {
    const { questions, memories } = traces[user % traces.length] as (typeof traces)[0];
    for (let turn = 0; turn < REQUESTS; turn++) {
      const asked = questions[turn % questions.length] as (typeof questions)[0];
      const answer = { role: "assistant" as const, content: String(asked.answer ?? "I don't know.") };
      const said = turn > 0 && isTalking(user) ? [answer] : [];
      const options = {
        userId: userIdOf(user),
        ...(isTalking(user)
          ? { conversationId: CONVERSATION, history: "stored" as const, maxPromptTokens: 8_000 }
          : {}),
        messages: [...said, { role: "user" as const, content: asked.question }],
        memories: asked.retrieved.slice(0, K).map((at) => ({ id: String(at), memory: memories[at]?.memory ?? "" })),
      };
      await memstem.compose(readComposeOptions(options));
    }
  }
  await memstem.close();
}

/** Moments of one load, as `performance.now()` has them. */
interface LoadTimes {
  readonly start: number;
  readonly loaded: number;
  readonly planned: number;
  readonly end: number;
}

async function measure(name: string, database: JournalDatabase): Promise<void> {
  const store = new JournalStore(database);
  for (const talking of [false, true]) {
    const times: LoadTimes[] = [];
    const collections = new Collections();
    const read: { readonly snapshot: number; readonly records: number; readonly changes: number }[] = [];
    for (let round = 0; round < LOADS; round++) {
      for (const user of users.filter((one) => isTalking(one) === talking)) {
        const scope = { tenant: "default", userId: userIdOf(user), agentId: null } as unknown as Scope;
        const start = performance.now();
        const { scope: stored } = await store.loadScope(scope);
        const loaded = performance.now();
        const state = new ScopeState(stored, countO200k, DEFAULT_SCOPE_BOUNDS);
        const planned = performance.now();
        const turns = talking ? await store.loadConversation(scope, CONVERSATION) : [];
        const end = performance.now();
        if (state.weight === 0 || (talking && turns.length < REQUESTS)) throw new Error("the user is not there");
        if (round >= COMPILED_AFTER_LOADS) times.push({ start, loaded, planned, end });
        if (round > 0) continue;
        const { snapshot, behind } = await database.load(scope);
        const changes = behind.reduce((length, record) => length + (record.changes?.length ?? 0), 0);
        read.push({ snapshot: snapshot?.data.length ?? 0, records: behind.length, changes });
      }
    }
    await collections.end();
    const ms = (of: (time: LoadTimes) => number) =>
      [0.5, 0.99].map((q) => quantile(times.map(of), q).toFixed(1)).join(" / ");
    const most = (of: (one: (typeof read)[0]) => number) => Math.max(...read.map(of));
    const cells = [
      `${name}, ${talking ? "in a conversation" : "single prompts"}`,
      (most(({ snapshot }) => snapshot) / 1e3).toFixed(0),
      String(most(({ records }) => records)),
      (most(({ changes }) => changes) / 1e3).toFixed(0),
      ms(({ start, loaded }) => loaded - start),
      ms(({ start, loaded }) => loaded - start - collections.within(start, loaded)),
      ms(({ loaded, planned }) => planned - loaded),
      ms(({ planned, end }) => end - planned),
      ms(({ start, end }) => end - start),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
  await store.close();
}

console.log(`${USERS} users of ${REQUESTS} requests, k = ${K}, each loaded ${LOADS} times; ms as median / p99`);
console.log(
  "| | snapshot, KB, at most | records behind, at most | their changes, KB | state | less collections | for planning | conversation | all |",
);
console.log("| -- | --: | --: | --: | --: | --: | --: | --: | --: |");
const folder = mkdtempSync(join(tmpdir(), "memstem-cold-"));
await ask({ MEMSTEM_DATA_DIR: folder });
await measure("SQLite", journalIn(openDatabase(join(folder, "memstem.db"))));
rmSync(folder, { recursive: true });
const server = await startServer([]);
await ask({ MEMSTEM_DATABASE_URL: server.url });
await measure("PostgreSQL", (await openPostgres(server.url)).journal);
await server.stop();
