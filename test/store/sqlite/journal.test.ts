import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import Database from "better-sqlite3";
import { afterAll } from "vitest";
import { openDatabase } from "../../../src/store/database/open-database.js";
import type { JournalDatabase } from "../../../src/store/journal/journal-database.js";
import { InlineJournal, ThreadedJournal } from "../../../src/store/sqlite/sqlite-journal.js";
import { IS_WHOLE } from "../../run-length.js";
import { describeJournal, type OpenedJournal } from "../journal/journal-database.suite.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-journal-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A thread runs what was built. */
const THREAD = pathToFileURL(resolve(import.meta.dirname, "../../../dist/store/sqlite/journal-thread.js"));

let files = 0;

type Open = (file: string) => JournalDatabase;
const inline: Open = (file) => new InlineJournal(openDatabase(file));
const threaded: Open = (file) => new ThreadedJournal(openDatabase(file), THREAD);

function opener(openOne: Open, openTwo: Open): () => Promise<OpenedJournal> {
  return async () => {
    const file = join(directory, `journal-${++files}.db`);
    const [one, two] = [openOne(file), openTwo(file)];
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

describeJournal("SQLite, on this thread", opener(inline, inline));
// What another process writes comes from another connection, whichever thread that is on; starting threads is what these tests take.
describeJournal("SQLite, on threads", opener(threaded, IS_WHOLE ? threaded : inline));
