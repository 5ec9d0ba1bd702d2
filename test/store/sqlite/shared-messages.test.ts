import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { JournalStore } from "../../../src/store/journal/journal-store.js";
import { InlineJournal, journalIn } from "../../../src/store/sqlite/sqlite-journal.js";
import { behind, describeSharedMessages, exchanges } from "../api/shared-messages.suite.js";
import { scopeOf } from "../api/stored-compose.js";
import { DrivenStore } from "../journal/driven-store.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-shared-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;

describeSharedMessages("a journal in SQLite", async () => {
  const file = join(directory, `${++files}.db`);
  const [first, second] = [openDatabase(file), openDatabase(file)];
  const [one, two] = [first, second].map((database) => new JournalStore(new InlineJournal(database)));
  const column = (sql: string) => first.sqlite.prepare<[], string>(sql).pluck().all();
  return {
    one: one as JournalStore,
    two: two as JournalStore,
    texts: async () => ({
      said: column("select said from journal where said is not null"),
      shared: column("select messages from instructions"),
    }),
    end: async () => {
      await one?.close();
      await two?.close();
    },
  };
});

describe("a message that prompts share, in a file", () => {
  const SECRET = "hides the key under the third flower pot, behind the garden shed";

  it("is in no byte of it once it was forgotten, nor once it expired", async () => {
    const file = join(directory, `${++files}.db`);
    const store = new JournalStore(journalIn(openDatabase(file)));
    const driven = new DrivenStore(store);
    const ana = scopeOf("ana");
    const bytes = () => readFileSync(file, "latin1") + readFileSync(`${file}-wal`, "latin1");
    const told = exchanges(10);
    const quoting = { role: "assistant", content: `As you said, Ana ${SECRET}.` };
    const memories = [{ id: "m1", text: `Ana ${SECRET}` }];
    for (let prompt = 0; prompt < 12; prompt++) {
      // A window over an answer that quotes the memory; rows move as others come and go.
      const window = [...told.slice(prompt), quoting, ...told.slice(0, prompt)];
      await driven.compose(ana, behind(window, { requestId: `r${prompt}`, memories, at: 1_000 + prompt }));
    }
    await driven.compose(ana, behind(exchanges(12).slice(22), { requestId: "new" }));
    expect(bytes()).toContain(SECRET);
    await driven.forget(ana, "m1", 2_000);
    await store.erased();
    expect(bytes()).not.toContain(SECRET);
    expect(bytes()).toContain("Question 3?");
    await driven.expire(ana, 5_000);
    await store.emptyLog();
    await store.erased();
    expect(bytes()).not.toContain("Question 3?");
    expect(bytes()).toContain("Question 11?");
    await store.close();
  });
});
