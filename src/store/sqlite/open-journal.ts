/*
 * sqlite/: the journal and the API keys in one SQLite file.
 * In: calls of `JournalDatabase`, on the thread that serves. Out: what is stored, or the errors that it names.
 * `JournalReads` and `JournalWriter` do the work; `InlineJournal` on this thread, `ThreadedJournal` on threads of their own.
 */

import type { OpenDatabase } from "../database/open-database.js";
import type { JournalDatabase } from "../journal/journal-database.js";
import { InlineJournal } from "./inline-journal.js";
import { ThreadedJournal } from "./threaded-journal.js";

/**
 * The journal in a database whose scopes are all in it; closing it closes the database. In a file it has threads of its own; in memory, and
 * run from source, where there is no JavaScript file for a thread to load, it is on this one.
 */
export function journalIn(database: OpenDatabase): JournalDatabase {
  const isSource = import.meta.filename.endsWith(".ts");
  return database.sqlite.memory || isSource ? new InlineJournal(database) : new ThreadedJournal(database);
}
