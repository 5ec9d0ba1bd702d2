import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { afterAll } from "vitest";
import { openDatabase } from "../../../src/store/database/open-database.js";
import type { JournalDatabase } from "../../../src/store/journal/journal-database.js";
import { InlineJournal } from "../../../src/store/sqlite/inline-journal.js";
import { ThreadedJournal } from "../../../src/store/sqlite/threaded-journal.js";
import { describeJournal, type OpenedJournal } from "../journal/journal-database.suite.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-journal-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A thread runs what was built. */
const THREAD = pathToFileURL(resolve(import.meta.dirname, "../../../dist/store/sqlite/journal-thread.js"));

let files = 0;

function opener(openOne: (file: string) => JournalDatabase): () => Promise<OpenedJournal> {
  return async () => {
    const file = join(directory, `journal-${++files}.db`);
    const [one, two] = [openOne(file), openOne(file)];
    return {
      one,
      two,
      damage: (what) => damage(file, what),
      end: async () => {
        await one.close();
        await two.close();
      },
    };
  };
}

function damage(file: string, what: { readonly seq: number } | { readonly snapshotOf: number }): void {
  const sqlite = new Database(file, { timeout: 5_000 });
  if ("seq" in what) sqlite.prepare("update journal set said = replace(said, 'q', 'Q') where seq = ?").run(what.seq);
  else sqlite.prepare("update snapshots set data = replace(data, 't', 'T') where scope_id = ?").run(what.snapshotOf);
  sqlite.close();
}

describeJournal(
  "SQLite, on this thread",
  opener((file) => new InlineJournal(openDatabase(file))),
);
describeJournal(
  "SQLite, on threads",
  opener((file) => new ThreadedJournal(openDatabase(file), THREAD)),
);
