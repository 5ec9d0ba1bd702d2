import { describe, expect, it } from "vitest";
import { type ConversationId, digestOf, type RequestId } from "../../../src/core/index.js";
import type { StoredVersion } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import type { JournalUnit } from "../../../src/store/journal/journal-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { KnownRows } from "../../../src/store/journal/known-scopes.js";
import type {
  ReadArguments,
  ReadName,
  ReadResult,
  WriteArguments,
  WriteName,
  WriteResult,
} from "../../../src/store/sqlite/journal-calls.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { behind, exchanges } from "../api/shared-messages.suite.js";
import { scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "./driven-store.js";

const [ana, bo] = [scopeOf("ana"), scopeOf("bo")];
const version = (commits: number, scopeId = 1): StoredVersion => ({ scopeId, commits, sum: commits });
const rows = (...names: readonly string[]) => names.map((name) => digestOf(name));

/** A journal that counts the shared rows that it is told to keep. */
class CountedJournal extends InlineJournal {
  readonly kept: number[] = [];
  /** How many rows each reading asked for. */
  readonly asked: number[] = [];

  protected override ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>> {
    if (name === "shared") this.asked.push((args[1] as readonly unknown[]).length);
    return super.ask(name, ...args);
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

describe("rows that are known to be stored", () => {
  it("are those of the version that a commit made, and of those behind it that told so", () => {
    const known = new KnownRows();
    known.committed(ana, null, version(1), rows("a", "b"));
    expect([...known.at(ana, version(1))]).toEqual(rows("a", "b"));
    known.committed(ana, version(1), version(2), rows("c", "a"));
    known.committed(ana, version(2), version(3));
    expect([...known.at(ana, version(3))]).toEqual(rows("b", "c", "a"));
    for (const other of [version(2), version(4), version(3, 2), { ...version(3), sum: 9 }, null])
      expect(known.at(ana, other).size).toBe(0);
    expect(known.at(bo, version(3)).size).toBe(0);
  });

  it("are forgotten with a commit that nobody told of, as it may have removed them", () => {
    const known = new KnownRows();
    known.committed(ana, null, version(1), rows("a", "b"));
    known.committed(ana, version(2), version(3), rows("c"));
    expect([...known.at(ana, version(3))]).toEqual(rows("c"));
    expect(known.at(ana, version(1)).size).toBe(0);
  });

  it("are so many of a scope, those used last, and so many in all, of the scopes committed to last", () => {
    const known = new KnownRows(5, 3);
    known.committed(ana, null, version(1), rows("a", "b", "c", "d"));
    expect([...known.at(ana, version(1))]).toEqual(rows("b", "c", "d"));
    known.committed(bo, null, version(1, 2), rows("a", "b"));
    expect(known.at(ana, version(1)).size).toBe(3);
    known.committed(bo, version(1, 2), version(2, 2), rows("c"));
    expect(known.at(ana, version(1)).size).toBe(0);
    expect(known.at(bo, version(2, 2)).size).toBe(3);
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
