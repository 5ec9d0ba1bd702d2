import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import {
  type ConversationId,
  type Digest,
  type MemoryId,
  type RequestId,
  type Scope,
  ScopeState,
  type TurnId,
  type UserId,
} from "../../../src/core/index.js";
import type { Store } from "../../../src/store/api/store.js";
import { checkDatabase } from "../../../src/store/check/check-database.js";
import type { SealedDigest } from "../../../src/store/database/digest-seal.js";
import { type OpenDatabase, openDatabase } from "../../../src/store/database/open-database.js";
import { readScope } from "../../../src/store/database/scope-key.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { InlineJournal } from "../../../src/store/sqlite/inline-journal.js";
import { openJournalDatabase, upgradeToJournal } from "../../../src/store/upgrade/upgrade-to-journal.js";
import { behind, exchanges } from "../api/shared-messages.suite.js";
import { composeInto, countTokens, scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "../journal/driven-store.js";
import { remainsOf, wrongReferencesIn } from "../journal/remains.js";
import { TableStore } from "../tables/table-store.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-to-journal-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const FIXTURES = resolve(import.meta.dirname, "../database/fixtures");
const KEPT = readdirSync(FIXTURES).filter((name) => name.endsWith(".sql"));

let files = 0;

/** A file as an earlier version wrote it. */
function fileOf(fixture: string): string {
  const file = join(directory, `file-${++files}.db`);
  const sqlite = new Database(file);
  sqlite.pragma("journal_mode = WAL");
  sqlite.pragma("foreign_keys = OFF");
  sqlite.exec(readFileSync(join(FIXTURES, fixture), "utf8"));
  sqlite.close();
  return file;
}

interface Named {
  readonly scopes: readonly (Scope & { readonly scopeId: number })[];
  readonly conversations: readonly { readonly scopeId: number; readonly id: ConversationId }[];
  readonly turns: readonly { readonly scopeId: number; readonly id: TurnId; readonly createdAt: number }[];
  readonly requests: readonly {
    readonly scopeId: number;
    readonly id: RequestId;
    readonly turn: TurnId;
    readonly leaf: never;
  }[];
  readonly sections: readonly { readonly scopeId: number; readonly digest: Digest }[];
  readonly memories: readonly MemoryId[];
}

/** Everything in the tables that can be asked about. */
function namedIn({ sqlite, digests }: OpenDatabase): Named {
  const all = <T>(sql: string) => sqlite.prepare<[], T>(sql).all();
  const users = all<{ scopeId: number; tenant: string; userId: string; agentId: string }>(
    "select scope_id as scopeId, tenant, user_id as userId, agent_id as agentId from users",
  );
  return {
    scopes: users.map((row) => ({ ...readScope(row), scopeId: row.scopeId })),
    conversations: all("select scope_id as scopeId, id from conversations"),
    turns: all("select scope_id as scopeId, id, created_at as createdAt from turns order by id"),
    requests: all("select scope_id as scopeId, request_id as id, turn, leaf from requests order by turn"),
    sections: all<{ scopeId: number; digest: SealedDigest }>("select scope_id as scopeId, digest from sections").map(
      ({ scopeId, digest }) => ({ scopeId, digest: digests.open(digest) }),
    ),
    memories: all<{ id: MemoryId }>("select distinct memory_id as id from memory_versions").map(({ id }) => id),
  };
}

const byName = <T>(all: readonly T[]) => [...all].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** What a store answers to every question about them. */
async function answersOf(store: Store, named: Named): Promise<Readonly<Record<string, unknown>>> {
  const answers: Record<string, unknown> = {};
  const add = async (name: string, question: Promise<unknown>) => {
    answers[name] = await question;
  };
  for (const { scopeId, ...scope } of named.scopes) {
    const at = JSON.stringify(scope);
    const own = <T extends { readonly scopeId: number }>(all: readonly T[]) =>
      all.filter((row) => row.scopeId === scopeId);
    const { scope: stored, version, deletions } = await store.loadScope(scope);
    const published = { clusters: stored.published.clusters(), accesses: stored.published.accesses() };
    const register = { ...stored.register, versions: byName(stored.register.versions) };
    answers[`${at} state`] = { ...stored, register, published, deletions, scopeId: version?.scopeId };
    await add(`${at} counts`, store.counts(scope));
    await add(`${at} live`, store.liveRequests(scope, 100));
    await add(
      `${at} sections`,
      store.knownSections(
        scope,
        own(named.sections).map(({ digest }) => digest),
      ),
    );
    await add(`${at} agents`, store.scopesOf(scope.tenant, scope.userId));
    for (const { id } of own(named.conversations)) {
      await add(`${at} conversation ${id}`, store.loadConversation(scope, id));
      await add(`${at} history ${id}`, store.findHistory(scope, id));
    }
    for (const { id, turn, leaf } of own(named.requests)) {
      await add(`${at} request ${id}`, store.findRequest(scope, id));
      await add(`${at} served ${id}`, store.findServed(scope, id));
      await add(`${at} prompts ${id}`, store.findPromptHistory(scope, id));
      await add(`${at} reported before ${id}`, store.findReportedBefore(scope, turn));
      await add(`${at} served since ${id}`, store.countServedSince(scope, leaf, (turn - 1) as TurnId, 10));
    }
    for (const { id, createdAt } of own(named.turns)) {
      await add(`${at} worker ${id}`, store.findWorker(scope, id));
      await add(`${at} under way since ${id}`, store.underWaySince(scope, createdAt - 1));
      await add(
        `${at} old ${id}`,
        store.scopesWithOldTurns(createdAt + 1, 0).then(({ scopes }) => byName(scopes)),
      );
    }
    const newest = Math.max(0, ...own(named.turns).map(({ createdAt }) => createdAt));
    const { expired, remaining } = await store.scanTurns(scope, newest, 0, 10_000);
    answers[`${at} expired`] = [expired, remaining].map((turns) => turns.map(({ messages, ...turn }) => turn));
  }
  for (const id of named.memories)
    await add(
      `memory ${id}`,
      store.scopesWithMemory("default", id, 0).then(({ scopes }) => byName(scopes)),
    );
  const ids = named.requests.map(({ id }) => id);
  await add("found live", store.findLiveRequests("default", ids).then(byName));
  return answers;
}

const tablesIn = (sqlite: OpenDatabase["sqlite"]) =>
  sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all() as string[];

describe("a file from before the journal", () => {
  it.each(KEPT)("%s answers every question as before", async (fixture) => {
    const before = openDatabase(fileOf(fixture));
    const named = namedIn(before);
    expect(named.requests.length).toBeGreaterThan(0);
    const tables = new TableStore(before);
    const expected = await answersOf(tables, named);
    await tables.close();
    const repeated = Object.entries(expected).filter(([question]) =>
      / (request|served|prompts|history) /.test(question),
    );
    expect(repeated.length).toBeGreaterThanOrEqual(named.requests.length * 3);
    expect(repeated.filter(([, answer]) => answer === null)).toEqual([]);

    const database = openJournalDatabase(before.sqlite.name);
    expect(tablesIn(database.sqlite)).not.toContain("turns");
    expect(tablesIn(database.sqlite)).toContain("journal");
    expect(database.sqlite.pragma("foreign_key_check")).toEqual([]);
    const journal = new JournalStore(new InlineJournal(database));
    expect(await answersOf(journal, named)).toEqual(expected);
    await journal.close();
  });

  it("has its messages once still, where windows and histories came again and again", async () => {
    const file = join(directory, `file-${++files}.db`);
    const before = openDatabase(file);
    const driven = new DrivenStore(new TableStore(before));
    const ana = scopeOf("ana");
    const quoting = { role: "user", content: `They say that Ana likes green tea, ${"and so on, ".repeat(20)}` };
    const told = [...exchanges(10, 500), quoting, ...exchanges(1)];
    const memories = [{ id: "m1", text: "Ana likes green tea" }];
    for (let turn = 0; turn < 12; turn++) {
      await driven.compose(ana, behind(told, { requestId: `single-${turn}`, memories }));
      const window = behind(exchanges(turn + 4, 500).slice(-8), { requestId: `window-${turn}`, conversationId: "c" });
      await driven.compose(ana, window);
    }
    await driven.forget(ana, "m1", 2_000_000);
    await driven.compose(ana, behind(exchanges(10, 500), { requestId: "since" }));
    const named = namedIn(before);
    const expected = await answersOf(driven.store, named);
    const bytes = Number(before.sqlite.prepare("select sum(length(body)) from messages").pluck().get());
    expect(expected[`${JSON.stringify(ana)} request single-3`]).toBeNull();
    await driven.store.close();
    expect(checkDatabase(file).findings).toEqual([]);

    const database = openJournalDatabase(file);
    const journal = new JournalStore(new InlineJournal(database));
    expect(await answersOf(journal, named)).toEqual(expected);
    expect(wrongReferencesIn(database)).toEqual([]);
    expect(await remainsOf(database, journal, ana.userId, "m1", ["Ana likes green tea"])).toEqual([]);
    const stored = "select (select sum(length(said)) from journal) + (select sum(length(messages)) from instructions)";
    // Besides, each of 25 requests has its answer, and 46 characters for each message that it refers to.
    expect(Number(database.sqlite.prepare(stored).pluck().get())).toBeLessThan(bytes + 25 * (1_500 + 46 * 25));
    const given = async (requestId: string) =>
      (await journal.findRequest(ana, requestId as RequestId))?.turns.flatMap((turn) => turn.given);
    expect((await given("since"))?.slice(0, -1)).toEqual(exchanges(10, 500));
    await journal.close();
    expect(checkDatabase(file).findings).toEqual([]);
  });

  it("goes on where a process was killed between two scopes, and is moved once by two processes", async () => {
    const before = openDatabase(fileOf("0009_scopes_together.sql"));
    const named = namedIn(before);
    const tables = new TableStore(before);
    const expected = await answersOf(tables, named);
    await tables.close();
    const file = before.sqlite.name;

    const killed = openDatabase(file);
    // The second scope's snapshot does not get in.
    killed.sqlite.exec(`create temp trigger stop before insert on snapshots when new.scope_id > 1
      begin select raise(abort, 'killed'); end`);
    expect(() => upgradeToJournal(killed)).toThrow("killed");
    expect(killed.sqlite.prepare("select count(*) from users where table_version = 0").pluck().get()).toBe(1);
    expect(killed.sqlite.prepare("select count(distinct scope_id) from journal").pluck().get()).toBe(1);
    expect(tablesIn(killed.sqlite)).toContain("turns");
    killed.sqlite.close();

    const [one, two] = [openDatabase(file), openDatabase(file)];
    expect(upgradeToJournal(one)).toBe(named.scopes.length - 1);
    expect(upgradeToJournal(two)).toBe(0);
    two.sqlite.close();
    const journal = new JournalStore(new InlineJournal(one));
    expect(await answersOf(journal, named)).toEqual(expected);
    await journal.close();
  });

  it("cannot be written by a process of an earlier version that has it open", async () => {
    const file = fileOf("0009_scopes_together.sql");
    const older = new Database(file);
    const commit = older.prepare("update users set version = version + 1 where scope_id = 1");
    expect(commit.run().changes).toBe(1);
    const database = openJournalDatabase(file);
    const users = database.sqlite.prepare("select * from users").all();
    expect(() => commit.run()).toThrow("no such column: version");
    expect(database.sqlite.prepare("select * from users").all()).toEqual(users);
    older.close();
    database.sqlite.close();
  });

  it("has its conversations go on, and its users deleted with all they said", async () => {
    const database = openJournalDatabase(fileOf("0009_scopes_together.sql"));
    const journal = new InlineJournal(database);
    const [{ tenant, userId }] = database.sqlite.prepare("select tenant, user_id as userId from users").all() as [
      { tenant: string; userId: UserId },
    ];
    expect(await journal.deleteUser(tenant, userId, { memoryId: null, isInSource: false }, [])).toBeGreaterThan(0);
    expect(await journal.scopesOf(tenant, userId)).toEqual([]);
    await journal.close();
  });
});

it("a file from before index nodes had times and tokens is opened, and gone on with", async () => {
  const file = fileOf("0002_retention.sql");
  const store = new JournalStore(new InlineJournal(openJournalDatabase(file)));
  const [ana] = await store.scopesOf("default", "ana" as UserId);
  expect(ana).toBeDefined();
  const { scope } = await store.loadScope(ana as Scope);
  expect(scope.nodes.length).toBeGreaterThan(1);
  for (const node of scope.nodes) expect([node.usedAt, node.tokens]).toEqual([0, 0]);
  new ScopeState(scope, countTokens).index.check();
  const { requests } = await store.counts(ana as Scope);
  await composeInto(store, ana as Scope, { requestId: "new", question: "Well?", memories: { m1: "Ana likes tea." } });
  expect((await store.counts(ana as Scope)).requests).toBe(requests + 1);
  await store.close();
});

it("a new file has no tables from before the journal", () => {
  const { sqlite } = openJournalDatabase(":memory:");
  expect(tablesIn(sqlite)).not.toContain("index_nodes");
  sqlite.close();
});
