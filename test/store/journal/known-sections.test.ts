import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Digest, digestOf, type RequestId } from "../../../src/core/index.js";
import type { CommitBase } from "../../../src/store/api/store.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { journalParts } from "../../../src/store/journal/journal-parts.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { KnownSections } from "../../../src/store/journal/known-scopes.js";
import type { ReadArguments, ReadName, ReadResult } from "../../../src/store/sqlite/journal-calls.js";
import { InlineJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { composeInto, deltaOf, recordFor, scopeOf, stateOf } from "../api/stored-compose.js";
import { DrivenStore } from "./driven-store.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-known-sections-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A journal that counts how often records are read. */
class CountedJournal extends InlineJournal {
  reads = 0;

  protected override ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>> {
    if (name === "read") this.reads++;
    return super.ask(name, ...args);
  }
}

let files = 0;
const newFile = () => join(directory, `store-${++files}.db`);
function openStore(file = newFile()) {
  const journal = new CountedJournal(openDatabase(file));
  return { file, journal, store: new JournalStore(journal) };
}

const ana = scopeOf("ana");
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
    const known = new KnownSections(journalParts(journal), 2);
    const all: Digest[] = [];
    for (const requestId of ["r1", "r2", "r3"]) {
      const { base, sections } = await composed(store, requestId);
      all.push(...sections);
      const ask = async () => {
        journal.reads = 0;
        expect(await known.find(ana, base.version, [NOT_OURS, ...all])).toEqual(all);
        return journal.reads;
      };
      const [first, again] = [await ask(), await ask()];
      expect(first).toBe(1);
      expect(again).toBe(requestId === "r3" ? 1 : 0);
    }
    await store.close();
  });
});
