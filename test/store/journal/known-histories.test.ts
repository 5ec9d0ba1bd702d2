import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { ChatMessage, ConversationId, Turn } from "../../../src/core/index.js";
import type { StoredVersion } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { KnownHistories } from "../../../src/store/journal/known-scopes.js";
import type { ReadArguments, ReadName, ReadResult } from "../../../src/store/sqlite/journal-calls.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { behind, exchanges } from "../api/shared-messages.suite.js";
import { scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "./driven-store.js";

const [ana, bo] = [scopeOf("ana"), scopeOf("bo")];
const id = "c" as ConversationId;
const version = (commits: number, scopeId = 1): StoredVersion => ({ scopeId, commits, sum: commits });
const head = [{ role: "system", content: "Be kind." }];

/** A turn that was given one message. */
function turn(number: number, parent: number | null, content = `Said ${number}`) {
  const own = { id: number, parent, conversationId: id } as unknown as Turn;
  return { turn: own, given: [{ role: "user", content }] as readonly ChatMessage[] };
}

/** A journal that counts the records that it is asked for. */
class CountedJournal extends InlineJournal {
  recordsRead = 0;

  protected override ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>> {
    if (name === "read") this.recordsRead += (args[0] as readonly unknown[]).length;
    return super.ask(name, ...args);
  }
}

describe("histories that are known", () => {
  const directory = mkdtempSync(join(tmpdir(), "memstem-known-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("go on with each commit that takes nothing away, from whichever turn it continues", () => {
    const known = new KnownHistories();
    const ids = (at: StoredVersion) => known.at(ana, at, id)?.turns.map((one) => one.turn.id);
    known.read(ana, version(1), id, { head, turns: [turn(1, null), turn(2, 1)] });
    known.composed(ana, version(1), version(2), { head, turns: [turn(3, 2)] });
    known.committed(ana, version(2), version(3));
    expect(ids(version(3))).toEqual([1, 2, 3]);
    for (const other of [version(2), version(3, 2), { ...version(3), sum: 9 }]) expect(ids(other)).toBeUndefined();
    known.composed(ana, version(3), version(4), { head, turns: [turn(4, 1), turn(5, 4)] });
    expect(ids(version(4))).toEqual([1, 4, 5]);
    known.composed(ana, version(4), version(5), { head, turns: [turn(6, null)] });
    expect(ids(version(5))).toEqual([6]);
    known.composed(ana, version(5), version(6), { head, turns: [turn(8, 7)] });
    expect(ids(version(6))).toBeUndefined();
  });

  it("end with a commit that takes something away, and with one that nobody told of", () => {
    const known = new KnownHistories();
    known.read(ana, version(1), id, { head, turns: [turn(1, null)] });
    known.ended(ana);
    expect(known.at(ana, version(1), id)).toBeNull();
    known.read(ana, version(1), id, { head, turns: [turn(1, null)] });
    known.composed(ana, version(2), version(3), { head, turns: [turn(2, 1)] });
    expect(known.at(ana, version(3), id)).toBeNull();
  });

  it("are of bounded size: the scope that was used longest ago goes first", () => {
    const long = "x".repeat(3_000);
    const known = new KnownHistories(10_000);
    known.read(ana, version(1), id, { head, turns: [turn(1, null, long)] });
    known.read(bo, version(1, 2), id, { head, turns: [turn(1, null, long)] });
    expect(known.at(ana, version(1), id)).not.toBeNull();
    known.composed(ana, version(1), version(2), { head, turns: [turn(2, 1, long)] });
    expect(known.at(bo, version(1, 2), id)).toBeNull();
    expect(known.at(ana, version(2), id)?.turns).toHaveLength(2);
    known.composed(ana, version(2), version(3), { head, turns: [turn(3, 2, long)] });
    expect(known.at(ana, version(3), id)).toBeNull();
  });

  it("are not changed by whoever gave the messages", () => {
    const known = new KnownHistories();
    known.read(ana, version(1), id, { head, turns: [turn(1, null)] });
    const part = { type: "text", text: "Tea?" };
    const message = { role: "user", content: [part], name: undefined };
    known.composed(ana, version(1), version(2), { head, turns: [{ ...turn(2, 1), given: [message] }] });
    part.text = "Coffee?";
    const given = known.at(ana, version(2), id)?.turns.at(-1)?.given;
    expect(given).toStrictEqual([{ role: "user", content: [{ type: "text", text: "Tea?" }] }]);
  });

  it("save a window's records from being read with each of its turns, until another process commits", async () => {
    const file = join(directory, "memstem.db");
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
