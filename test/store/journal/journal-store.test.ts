import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type ConversationId, type MemoryId, QuoteSearch, type Scope } from "../../../src/core/index.js";
import { StaleScopeError } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { CONVERSATION_PAGE, RECORD_KINDS } from "../../../src/store/journal/journal-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { describeStore } from "../api/store.suite.js";
import { allOf, composeInto, id, recordFor, scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "./driven-store.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-journal-store-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
const newFile = () => join(directory, `store-${++files}.db`);
const openStore = (file: string) => new JournalStore(new InlineJournal(openDatabase(file)));

describeStore("a journal in SQLite, file", () => openStore(newFile()));
describeStore("a journal in SQLite, in memory", () => openStore(":memory:"));

const ana = scopeOf("ana");
const TEA = { requestId: "r1", question: "What does she drink?", memories: { m1: "Ana likes tea." } };

describe("a journal as a store", () => {
  it("stores a compose as one row, and instructions once", async () => {
    const opened = openDatabase(":memory:");
    const store = new JournalStore(new InlineJournal(opened));
    for (const requestId of ["r1", "r2", "r3"]) await composeInto(store, ana, { ...TEA, requestId });
    const count = (table: string) => opened.sqlite.prepare(`select count(*) from ${table}`).pluck().get();
    expect([count("journal"), count("instructions"), count("snapshots")]).toEqual([3, 1, 0]);
    await store.close();
  });

  it("writes a snapshot after 32 records, from which another process loads the same", async () => {
    const file = newFile();
    const [one, two] = [openStore(file), openStore(file)];
    let version = null;
    for (let n = 1; n <= 40; n++) {
      const { base, record } = await recordFor(one, ana, { ...TEA, requestId: `r${n}` });
      // A version goes on from the one before, as in a process that keeps the scope in memory.
      version = await one.commitCompose(ana, { ...base, version: version ?? base.version }, record);
    }
    expect(version?.commits).toBe(40);
    const { sqlite } = openDatabase(file);
    expect(sqlite.prepare("select n from snapshots").pluck().get()).toBe(32);
    sqlite.close();
    expect(await allOf(two, ana)).toEqual(await allOf(one, ana));
    expect((await two.loadScope(ana)).scope.counters.requests).toBe(40);
    await one.close();
    await two.close();
  });

  it("lets the second of two processes with one request find the first's answer", async () => {
    const file = newFile();
    const [one, two] = [openStore(file), openStore(file)];
    const [first, second] = [await recordFor(one, ana, TEA), await recordFor(two, ana, TEA)];
    await one.commitCompose(ana, first.base, first.record);
    await expect(two.commitCompose(ana, second.base, second.record)).rejects.toThrow(StaleScopeError);
    expect((await two.findRequest(ana, id("r1")))?.answer).toEqual(first.record.request.answer);
    expect((await two.counts(ana)).requests).toBe(1);
    await one.close();
    await two.close();
  });

  it("has instructions again that were erased before any agent forgot the memory", async () => {
    const file = newFile();
    const [one, two] = [openStore(file), openStore(file)];
    const coach: Scope = { ...ana, agentId: "coach" as Scope["agentId"] };
    const kind = { m1: "Be kind." };
    await composeInto(one, ana, { ...TEA, memories: kind });
    await composeInto(one, coach, { ...TEA, memories: kind });
    // Another process knows the instructions as stored, and composes with them after this one was killed.
    const later = await recordFor(two, ana, { ...TEA, requestId: "r2", memories: {} });
    const known = await two.commitCompose(ana, later.base, later.record);
    const quotes = await one.findQuotes("default", ana.userId, "m1" as MemoryId, [], () => Promise.resolve());
    await one.eraseQuotes(quotes);
    expect(await one.findRequest(ana, id("r1"))).toBeNull();
    const third = await recordFor(two, ana, { ...TEA, requestId: "r3", memories: {} });
    const base = { ...third.base, version: known };
    await expect(two.commitCompose(ana, base, third.record)).rejects.toThrow(StaleScopeError);
    await composeInto(two, ana, { ...TEA, requestId: "r3", memories: {} });
    expect((await one.findRequest(ana, id("r3")))?.head).toEqual([{ role: "system", content: "Be kind." }]);
    await one.close();
    await two.close();
  });

  it("has a message that was erased where it is said again, and nowhere before: what was forgotten does not come back", async () => {
    const store = openStore(newFile());
    const driven = new DrivenStore(store);
    const said = { conversationId: "c1", system: "Be kind.", history: "same", worker: null } as const;
    const quoting = { ...said, question: "Is it true that Ana likes green tea?" };
    const memories = [{ id: "m1", text: "Ana likes green tea" }];
    await driven.compose(ana, { ...quoting, requestId: "r1", memories, at: 1_000 });
    await driven.forget(ana, "m1", 2_000);
    await driven.compose(ana, { ...quoting, requestId: "r2", memories: [], at: 3_000, conversationId: "c2" });
    expect(await store.findRequest(ana, id("r1"))).toBeNull();
    expect((await store.findRequest(ana, id("r2")))?.turns[0]?.given.at(-1)?.content).toBe(quoting.question);
    const [first, second] = ["c1", "c2"].map((name) => store.findHistory(ana, name as ConversationId));
    expect(await first).toMatchObject({ isWhole: false, messages: [] });
    expect(await second).toMatchObject({ isWhole: true });
    // The conversation goes on from the erased turn all the same: its digest is still there.
    const before = await store.loadConversation(ana, "c1" as ConversationId);
    const asked = { requestId: "r3", question: "And black tea?", conversationId: "c1", memories: {} };
    await composeInto(store, ana, { ...asked, history: [quoting.question, "I see."] });
    const turns = await store.loadConversation(ana, "c1" as ConversationId);
    expect(turns.at(-1)?.parent).toBe(before[0]?.id);
    await store.close();
  });

  it("takes a prompt for gone that another process takes back while it is read", async () => {
    const file = newFile();
    const other = new DrivenStore(openStore(file));
    let meanwhile: (() => Promise<void>) | null = null;
    class SlowJournal extends InlineJournal {
      override async read(seqs: readonly number[]) {
        const work = meanwhile;
        meanwhile = null;
        await work?.();
        return super.read(seqs);
      }
    }
    const store = new JournalStore(new SlowJournal(openDatabase(file)));
    for (const requestId of ["r1", "r2", "r3", "r4"]) await composeInto(store, ana, { ...TEA, requestId });
    meanwhile = () => other.withdraw(ana, "r3");
    expect((await store.scanTurns(ana, Number.POSITIVE_INFINITY, 0, 100)).expired.map((turn) => turn.id)).toEqual([
      1, 2, 4,
    ]);
    meanwhile = () => other.withdraw(ana, "r2");
    await expect(new DrivenStore(store).withdraw(ana, "r1")).rejects.toThrow(StaleScopeError);
    expect((await store.counts(ana)).turns).toBe(2);
    await store.close();
    await other.store.close();
  });

  it("keeps no response that another process stores right before a memory's deletion is counted", async () => {
    const file = newFile();
    const other = openStore(file);
    let meanwhile: (() => Promise<void>) | null = null;
    class SlowJournal extends InlineJournal {
      override async write(...of: Parameters<InlineJournal["write"]>) {
        const work = meanwhile;
        meanwhile = null;
        await work?.();
        return super.write(...of);
      }
    }
    const store = new JournalStore(new SlowJournal(openDatabase(file)));
    await composeInto(store, ana, TEA);
    const before = await other.deletionsOf(ana.tenant, ana.userId);
    const keep = (name: string) => other.keepResponse(ana, before, name, id("r1"), null, 10);
    meanwhile = () => keep("a");
    await new DrivenStore(store).forget(ana, "m1", 2_000);
    expect(meanwhile).toBeNull();
    expect(await other.findResponse(ana, "a")).toBeNull();
    await keep("b");
    expect(await other.findResponse(ana, "b")).toBeNull();
    await Promise.all([store.close(), other.close()]);
  });

  it("loads a scope with a conversation of several pages, or without where it changes meanwhile", async () => {
    const file = newFile();
    const [store, other] = [openStore(file), new DrivenStore(openStore(file))];
    const conversationId = "c" as ConversationId;
    for (let n = 0; n <= CONVERSATION_PAGE; n++)
      await composeInto(store, ana, { ...TEA, requestId: `r${n}`, conversationId, question: `Tea ${n}?` });
    const turns = await store.loadConversation(ana, conversationId);
    expect(turns).toHaveLength(CONVERSATION_PAGE + 1);
    expect((await store.loadScope(ana, conversationId)).conversation).toEqual(turns);
    expect((await store.loadScope(ana)).conversation).toBeNull();
    let meanwhile: (() => Promise<void>) | null = () => other.withdraw(ana, `r${CONVERSATION_PAGE}`);
    class SlowJournal extends InlineJournal {
      override async list(...of: Parameters<InlineJournal["list"]>) {
        const work = meanwhile;
        meanwhile = null;
        await work?.();
        return super.list(...of);
      }
    }
    const slow = new JournalStore(new SlowJournal(openDatabase(file)));
    const loaded = await slow.loadScope(ana, conversationId);
    expect(loaded.conversation).toBeNull();
    expect(loaded.version?.commits).toBe(CONVERSATION_PAGE + 1);
    await Promise.all([store.close(), slow.close(), other.store.close()]);
  });

  it("has a block's text in no row once the block expired, whatever changed it", async () => {
    const opened = openDatabase(":memory:");
    const store = new JournalStore(new InlineJournal(opened));
    const driven = new DrivenStore(store);
    const say = (requestId: string, at: number, memories: Readonly<Record<string, string>>) =>
      driven.compose(ana, {
        ...{ requestId, at, conversationId: null, question: `What about ${requestId}?`, system: "Be kind." },
        ...{ history: "none", worker: null },
        memories: Object.entries(memories).map(([memory, text]) => ({ id: memory, text })),
      });
    const told = "Ana gave up chess for good";
    // More than a snapshot's worth of records, before it and behind it, that have the text in their changes.
    for (let nth = 0; nth < 30; nth++) {
      await say(`old${nth}`, 1_000 + nth, { m1: `${told}, she said ${nth} times`, m2: "Bo reads." });
      await driven.update(ana, "m1", `${told}, as of day ${nth}`);
    }
    // The first of these supersedes the text, and stays.
    for (let nth = 0; nth < 3; nth++) await say(`new${nth}`, 9_000 + nth, { m1: "She plays go.", m2: "Bo reads." });
    await driven.withdraw(ana, "new2");
    await driven.report(ana, "new1", { promptTokens: 100, cachedTokens: 10 });
    const rowsWith = (text: string) =>
      ["journal", "snapshots", "instructions", "responses"].flatMap((table) =>
        opened.sqlite
          .prepare(`select * from ${table}`)
          .all()
          .filter((row) => new QuoteSearch([text]).isIn(JSON.stringify(row))),
      ).length;
    expect(rowsWith(told)).toBeGreaterThan(32);
    const before = await store.loadScope(ana);
    await driven.expire(ana, 5_000);
    expect(rowsWith(told)).toBe(0);
    // What is left is what is asked for: two prompts, a report, the expiry, and which sections the prompt had that was taken back.
    const kinds = opened.sqlite.prepare("select kind from journal order by n").pluck().all();
    expect(kinds.map((kind) => RECORD_KINDS[kind as number])).toEqual([
      ...["composed", "composed", "withdrawn", "reported", "expired"],
    ]);
    expect(rowsWith("Bo reads.")).toBe(1);
    expect((await store.loadScope(ana)).scope.counters).toEqual(before.scope.counters);
    await say("last", 10_000, { m1: told });
    await driven.expire(ana, 9_500);
    expect(opened.sqlite.prepare("select count(*) from journal").pluck().get()).toBe(3);
    await store.close();
  });
});
