/*
 * upgrade/: files from before the journal.
 * In: an open database whose scopes stand in a table for each kind of thing.
 * Out: the same scopes as records of the journal; every answer is the same.
 */

import { DatabaseOpenError } from "../database/database-open-error.js";
import { type OpenDatabase, openDatabase, reasonOf } from "../database/open-database.js";
import { waitingForLocks } from "../sqlite/lock-wait.js";
import { ScopeMove } from "./scope-move.js";
import { hasTables, TableScopes } from "./table-scope.js";

/** Tables from before the journal, those that refer to others first. */
const TABLES = [
  "requests",
  "turns",
  "conversations",
  "sections",
  "heads",
  "messages",
  "ordering_rows",
  "index_nodes",
  "memory_versions",
  "blocks",
] as const;

/** Milliseconds that each step of an upgrade waits for another process, which may be moving a scope. Nothing is served yet. */
const LOCK_WAIT_MS = 5_000;

/** Opens a database file, or `":memory:"`, with all its scopes in the journal. Throws {@link DatabaseOpenError}. */
export function openJournalDatabase(file: string): OpenDatabase {
  const database = openDatabase(file);
  try {
    upgradeToJournal(database);
    return database;
  } catch (error) {
    database.sqlite.close();
    throw new DatabaseOpenError(file, reasonOf(error), { cause: error });
  }
}

/**
 * Moves every scope that is not in the journal yet into it, each in one transaction, and then drops the tables that they stood in. After a
 * kill at any point the next call goes on; several processes may do it together. Blocks; the file grows to about twice its size meanwhile.
 * Gives how many scopes were moved here.
 */
export function upgradeToJournal(database: OpenDatabase): number {
  const { sqlite } = database;
  if (!hasTables(sqlite)) return 0;
  let moved = 0;
  const scopes = new TableScopes(database);
  const move = new ScopeMove(database, scopes);
  for (let after = 0; ; ) {
    const next = waitingForLocks(() => scopes.next(after), LOCK_WAIT_MS);
    if (next === null) break;
    after = next.scopeId;
    if (waitingForLocks(() => move.run(next), LOCK_WAIT_MS)) moved++;
  }
  waitingForLocks(() => dropTables(database, scopes), LOCK_WAIT_MS);
  return moved;
}

function dropTables({ sqlite }: OpenDatabase, scopes: TableScopes): void {
  const drop = sqlite.transaction(() => {
    if (!hasTables(sqlite) || scopes.next(0) !== null) return;
    for (const table of TABLES) sqlite.exec(`drop table ${table}`);
  });
  drop.immediate();
}
