import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  type ChatMessage,
  type ConversationId,
  type Digest,
  digestOf,
  type RequestId,
  type Scope,
  type Turn,
} from "../../../src/core/index.js";
import type { CommitBase, ComposeRecord, StoredVersion } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import type { JournalUnit } from "../../../src/store/journal/journal-database.js";
import { journalParts } from "../../../src/store/journal/journal-parts.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { type KnownBounds, KnownScopes } from "../../../src/store/journal/known-scopes.js";
import type { WriteArguments, WriteName, WriteResult } from "../../../src/store/sqlite/journal-writer.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { behind, exchanges } from "../api/shared-messages.suite.js";
import { composeInto, deltaOf, recordFor, scopeOf, stateOf } from "../api/stored-compose.js";
import { DrivenStore } from "./driven-store.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-known-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const newFile = () => join(directory, `store-${++files}.db`);

const [ana, bo] = [scopeOf("ana"), scopeOf("bo")];
const id = "c" as ConversationId;
const head = [{ role: "system", content: "Be kind." }];
const version = (commits: number, scopeId = 1): StoredVersion => ({ scopeId, commits, sum: commits });
const rows = (...names: readonly string[]) => names.map((name) => digestOf(name));
const NO_BOUNDS: KnownBounds = { scopes: 100, characters: 1e9, rows: 1e9, sections: 1e9 };

/** A journal that counts what it is asked to read and to keep. */
class CountedJournal extends InlineJournal {
  /** Shared rows that each commit keeps, and that each reading asks for. */
  readonly kept: number[] = [];
  readonly asked: number[] = [];
  reads = 0;
  recordsRead = 0;

  override shared(...of: Parameters<InlineJournal["shared"]>) {
    this.asked.push(of[1].length);
    return super.shared(...of);
  }

  override read(seqs: readonly number[]) {
    this.reads++;
    this.recordsRead += seqs.length;
    return super.read(seqs);
  }

  protected override tell<Name extends WriteName>(
    name: Name,
    ...args: WriteArguments<Name>
  ): Promise<WriteResult<Name>> {
    if (name === "writeTogether")
      for (const { changes } of args[0] as unknown as readonly JournalUnit[])
        this.kept.push(changes.reduce((sum, one) => sum + (one.kind === "keep-shared" ? one.rows.length : 0), 0));
    return super.tell(name, ...args);
  }
}

function openStore(file = newFile()) {
  const journal = new CountedJournal(openDatabase(file));
  return { file, journal, store: new JournalStore(journal) };
}

/** What is known, of commits that are told of here. */
class Told {
  readonly known: KnownScopes;

  constructor(bounds: Partial<KnownBounds> = {}) {
    this.known = new KnownScopes(journalParts(new InlineJournal(openDatabase(":memory:"))), {
      ...NO_BOUNDS,
      ...bounds,
    });
  }

  async composed(
    scope: Scope,
    before: StoredVersion | null,
    next: StoredVersion,
    { used = [], turns = [] }: { used?: readonly Digest[]; turns?: readonly ReturnType<typeof turn>[] },
  ): Promise<void> {
    const own = turns.at(-1) ?? { turn: { conversationId: null } as Turn, given: [] };
    const composition = { sections: [], restated: turns.slice(0, -1), ...own, head } as unknown;
    await this.known.composed(scope, baseOf(before), composition as ComposeRecord["composition"], {
      committed: Promise.resolve(next),
      used,
    });
  }

  async kept(scope: Scope, before: StoredVersion, next: StoredVersion): Promise<void> {
    await this.known.kept(scope, baseOf(before), Promise.resolve(next));
  }
}

const baseOf = (at: StoredVersion | null): CommitBase => ({ version: at, deletions: { users: 0, memories: 0 } });

/** A turn that was given one message. */
function turn(number: number, parent: number | null, content = `Said ${number}`) {
  const own = { id: number, parent, conversationId: id } as unknown as Turn;
  return { turn: own, given: [{ role: "user", content }] as readonly ChatMessage[] };
}

describe("rows that are known to be stored", () => {
  it("are those of the version that a commit made, and of those behind it that told so", async () => {
    const told = new Told();
    await told.composed(ana, null, version(1), { used: rows("a", "b") });
    expect([...told.known.rowsAt(ana, version(1))]).toEqual(rows("a", "b"));
    await told.composed(ana, version(1), version(2), { used: rows("c", "a") });
    await told.kept(ana, version(2), version(3));
    expect([...told.known.rowsAt(ana, version(3))]).toEqual(rows("b", "c", "a"));
    for (const other of [version(2), version(4), version(3, 2), { ...version(3), sum: 9 }, null])
      expect(told.known.rowsAt(ana, other).size).toBe(0);
    expect(told.known.rowsAt(bo, version(3)).size).toBe(0);
  });

  it("are forgotten with a commit that nobody told of, as it may have removed them", async () => {
    const told = new Told();
    await told.composed(ana, null, version(1), { used: rows("a", "b") });
    await told.composed(ana, version(2), version(3), { used: rows("c") });
    expect([...told.known.rowsAt(ana, version(3))]).toEqual(rows("c"));
    expect(told.known.rowsAt(ana, version(1)).size).toBe(0);
  });

  it("are so many of a scope, those used last, and so many in all, of the scopes used last", async () => {
    const told = new Told({ rows: 3, characters: 5 * 50 });
    await told.composed(ana, null, version(1), { used: rows("a", "b", "c", "d") });
    expect([...told.known.rowsAt(ana, version(1))]).toEqual(rows("b", "c", "d"));
    await told.composed(bo, null, version(1, 2), { used: rows("a", "b") });
    expect(told.known.rowsAt(ana, version(1)).size).toBe(3);
    await told.composed(bo, version(1, 2), version(2, 2), { used: rows("c") });
    expect(told.known.rowsAt(ana, version(1)).size).toBe(0);
    expect(told.known.rowsAt(bo, version(2, 2)).size).toBe(3);
  });

  it("are not written again with each prompt that refers to them", async () => {
    const journal = new CountedJournal(openDatabase(":memory:"));
    const driven = new DrivenStore(new JournalStore(journal));
    const told = exchanges(10);
    for (let at = 0; at < 3; at++) await driven.compose(ana, behind(told, { requestId: `r${at}` }));
    await driven.report(ana, "r2", { promptTokens: 10 });
    await driven.compose(ana, behind(told.slice(4), { requestId: "r3" }));
    // The messages and the instructions, once.
    expect(journal.kept).toEqual([21, 0, 0, 0, 0]);
    await driven.withdraw(ana, "r3");
    await driven.compose(ana, behind(told, { requestId: "r4" }));
    expect(journal.kept.slice(-2)).toEqual([0, 21]);
    await driven.store.close();
  });

  it("are read where a text is needed, together, and not where only turns are", async () => {
    const journal = new CountedJournal(openDatabase(":memory:"));
    const store = new JournalStore(journal);
    const driven = new DrivenStore(store);
    const told = exchanges(10);
    for (let at = 0; at < 5; at++)
      await driven.compose(ana, behind(told.slice(2 * at), { requestId: `r${at}`, conversationId: "c" }));
    journal.asked.length = 0;
    expect(await store.loadConversation(ana, "c" as ConversationId)).toHaveLength(5);
    expect((await store.scanTurns(ana, Number.POSITIVE_INFINITY, 0, 100)).expired).toHaveLength(5);
    expect(journal.asked).toEqual([]);
    expect((await store.findRequest(ana, "r2" as RequestId))?.turns[0]?.given).toHaveLength(17);
    // Its history, and the instructions; its question is short.
    expect(journal.asked).toEqual([16, 1]);
    await store.close();
  });
});

describe("histories that are known", () => {
  it("go on with each commit that takes nothing away, from whichever turn it continues", async () => {
    const told = new Told();
    const ids = (at: StoredVersion) => told.known.pathAt(ana, at, id)?.turns.map((one) => one.turn.id);
    told.known.read(ana, version(1), id, { head, turns: [turn(1, null), turn(2, 1)] });
    await told.composed(ana, version(1), version(2), { turns: [turn(3, 2)] });
    await told.kept(ana, version(2), version(3));
    expect(ids(version(3))).toEqual([1, 2, 3]);
    for (const other of [version(2), version(3, 2), { ...version(3), sum: 9 }]) expect(ids(other)).toBeUndefined();
    await told.composed(ana, version(3), version(4), { turns: [turn(4, 1), turn(5, 4)] });
    expect(ids(version(4))).toEqual([1, 4, 5]);
    await told.composed(ana, version(4), version(5), { turns: [turn(6, null)] });
    expect(ids(version(5))).toEqual([6]);
    await told.composed(ana, version(5), version(6), { turns: [turn(8, 7)] });
    expect(ids(version(6))).toBeUndefined();
  });

  it("end with a commit that takes something away, before it is stored, and with one that nobody told of", async () => {
    const told = new Told();
    told.known.read(ana, version(1), id, { head, turns: [turn(1, null)] });
    const ending = told.known.ended(ana, Promise.resolve());
    expect(told.known.pathAt(ana, version(1), id)).toBeNull();
    await ending;
    told.known.read(ana, version(1), id, { head, turns: [turn(1, null)] });
    await told.composed(ana, version(2), version(3), { turns: [turn(2, 1)] });
    expect(told.known.pathAt(ana, version(3), id)).toBeNull();
  });

  it("are of bounded size: the scope that was used longest ago goes first", async () => {
    const long = "x".repeat(3_000);
    const told = new Told({ characters: 10_000 });
    told.known.read(ana, version(1), id, { head, turns: [turn(1, null, long)] });
    told.known.read(bo, version(1, 2), id, { head, turns: [turn(1, null, long)] });
    expect(told.known.pathAt(ana, version(1), id)).not.toBeNull();
    await told.composed(ana, version(1), version(2), { turns: [turn(2, 1, long)] });
    expect(told.known.pathAt(bo, version(1, 2), id)).toBeNull();
    expect(told.known.pathAt(ana, version(2), id)?.turns).toHaveLength(2);
    await told.composed(ana, version(2), version(3), { turns: [turn(3, 2, long)] });
    expect(told.known.pathAt(ana, version(3), id)).toBeNull();
  });

  it("are not changed by whoever gave the messages", async () => {
    const told = new Told();
    told.known.read(ana, version(1), id, { head, turns: [turn(1, null)] });
    const part = { type: "text", text: "Tea?" };
    const message = { role: "user", content: [part], name: undefined };
    await told.composed(ana, version(1), version(2), { turns: [{ ...turn(2, 1), given: [message] }] });
    part.text = "Coffee?";
    const given = told.known.pathAt(ana, version(2), id)?.turns.at(-1)?.given;
    expect(given).toStrictEqual([{ role: "user", content: [{ type: "text", text: "Tea?" }] }]);
  });

  it("save a window's records from being read with each of its turns, until another process commits", async () => {
    const file = newFile();
    openDatabase(file).sqlite.close();
    const journal = new CountedJournal(openDatabase(file));
    const driven = new DrivenStore(new JournalStore(journal));
    const said = exchanges(10);
    const compose = async (of: DrivenStore, at: number) => {
      await of.compose(ana, behind(said.slice(0, 4 + 2 * at), { requestId: `r${at}`, conversationId: id }));
      return (await of.store.findHistory(ana, id))?.messages.length;
    };
    const lengths = [await compose(driven, 0), await compose(driven, 1)];
    // What else is read of them is another matter.
    driven.store.loadConversation = async () => [];
    driven.store.knownSections = async () => [];
    const before = journal.recordsRead;
    lengths.push(await compose(driven, 2));
    expect(journal.recordsRead).toBe(before);
    const other = new DrivenStore(new JournalStore(new InlineJournal(openDatabase(file))));
    lengths.push(await compose(other, 3));
    driven.drop();
    lengths.push(await compose(driven, 4));
    expect(journal.recordsRead).toBeGreaterThan(before);
    expect(await driven.store.findHistory(ana, id)).toEqual(await other.store.findHistory(ana, id));
    expect(lengths.every((length, at) => at === 0 || (length ?? 0) >= (lengths[at - 1] ?? 0))).toBe(true);
    await driven.store.close();
    await other.store.close();
  });
});

const NOT_OURS = digestOf("a section that was never sent");
const asked = (requestId: string) => ({ requestId, question: "And?", memories: { m1: `Ana told ${requestId}.` } });

/** Composes a request; gives its sections, and what the next commit builds on. */
async function composed(store: JournalStore, requestId: string, version?: CommitBase["version"]) {
  const { base, record } = await recordFor(store, ana, asked(requestId));
  const { deletions } = base;
  const next = await store.commitCompose(ana, { version: version ?? base.version, deletions }, record);
  return { sections: record.composition.sections, base: { version: next, deletions } };
}

describe("which sections were sent", () => {
  it("is read once, and then known, with what this process composes, of a scope that nobody else commits to", async () => {
    const { store, journal } = openStore();
    const first = await composed(store, "r1");
    expect(await store.knownSections(ana, [NOT_OURS])).toEqual([]);
    const second = await composed(store, "r2");
    const { state } = await stateOf(store, ana);
    state.register.resolve([{ id: "m1", text: "Ana tells no more." }] as never);
    const changed = await store.commitChanges(ana, second.base, deltaOf(state));
    const { deletions } = second.base;
    const report = { id: "r1" as RequestId, observed: { promptTokens: 3, cachedTokens: 1 } };
    const reported = await store.commitReport(ana, { version: changed, deletions }, deltaOf(state), report);
    await store.commitEviction(ana, { version: reported, deletions }, deltaOf(state), ["r1", "r2"] as RequestId[]);
    journal.reads = 0;
    const wanted = [NOT_OURS, ...second.sections, ...first.sections] as Digest[];
    expect(await store.knownSections(ana, wanted)).toEqual([...second.sections, ...first.sections]);
    expect(journal.reads).toBe(0);
    await store.close();
  });

  it("is asked again once another process has composed", async () => {
    const { file, store } = openStore();
    const { store: other } = openStore(file);
    await composed(store, "r1");
    expect(await store.knownSections(ana, [NOT_OURS])).toEqual([]);
    const { sections } = await composed(other, "r2");
    expect(sections).not.toEqual([]);
    expect(await store.knownSections(ana, [NOT_OURS, ...sections])).toEqual(sections);
    await store.close();
    await other.close();
  });

  it("is not what it was for a user who was deleted and came back", async () => {
    const { file, store } = openStore();
    const { store: other } = openStore(file);
    const { sections } = await composed(store, "r1");
    expect(await store.knownSections(ana, [NOT_OURS])).toEqual([]);
    await other.deleteUser(ana.tenant, ana.userId, false);
    expect(await store.knownSections(ana, sections)).toEqual([]);
    await composeInto(other, ana, { ...asked("r1"), memories: {} });
    expect(await store.knownSections(ana, sections)).toEqual([]);
    await store.close();
    await other.close();
  });

  it("does not lose what was forgotten, nor keep what expired", async () => {
    const { store } = openStore();
    const driven = new DrivenStore(store);
    const say = (requestId: string, at: number, ids: readonly string[]) =>
      driven.compose(ana, {
        ...{ requestId, at, conversationId: null, question: "And?", system: "Be kind.", history: "none" as const },
        ...{ worker: null, memories: ids.map((memory) => ({ id: memory, text: `What ${memory} tells` })) },
      });
    const [old, both] = [await say("r1", 1_000, ["m1"]), await say("r2", 2_000, ["m2", "m3"])];
    const asking = [NOT_OURS, ...old.sections, ...both.sections];
    expect(await store.knownSections(ana, asking)).toEqual([...old.sections, ...both.sections]);
    await driven.forget(ana, "m3", 3_000);
    expect(await store.knownSections(ana, asking)).toEqual([...old.sections, ...both.sections]);
    await driven.expire(ana, 1_500);
    expect(await store.knownSections(ana, asking)).toEqual(both.sections);
    await store.close();
  });

  it("is read each time where there is too much to remember", async () => {
    const { store, journal } = openStore();
    const known = new KnownScopes(journalParts(journal), { ...NO_BOUNDS, sections: 2 });
    const all: Digest[] = [];
    for (const requestId of ["r1", "r2", "r3"]) {
      const { base, sections } = await composed(store, requestId);
      all.push(...sections);
      const ask = async () => {
        journal.reads = 0;
        expect(await known.sectionsAmong(ana, base.version, [NOT_OURS, ...all])).toEqual(all);
        return journal.reads;
      };
      const [first, again] = [await ask(), await ask()];
      expect(first).toBe(1);
      expect(again).toBe(requestId === "r3" ? 1 : 0);
    }
    await store.close();
  });
});
