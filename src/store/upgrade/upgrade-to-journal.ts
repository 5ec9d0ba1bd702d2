/*
 * upgrade/: files from before the journal.
 * In: an open database whose scopes stand in a table for each kind of thing.
 * Out: the same scopes as records of the journal; every answer is the same.
 */

import { DatabaseOpenError } from "../database/database-open-error.js";
import { type OpenDatabase, openDatabase, reasonOf } from "../database/open-database.js";
import { faultOf } from "../database/sqlite-faults.js";
import { waitingForLocks } from "../sqlite/lock-wait.js";
import { ScopeMove } from "./scope-move.js";
import { hasTables, type NumberedScope, TableScopes } from "./table-scope.js";
import { type UpgradeListener, UpgradeProgress } from "./upgrade-progress.js";

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

/**
 * Opens a database file, or `":memory:"`, with all its scopes in the journal. Throws {@link DatabaseOpenError}.
 *
 * @param listener is told of an upgrade while it blocks
 */
export function openJournalDatabase(file: string, listener: UpgradeListener = () => {}): OpenDatabase {
  const progress = new UpgradeProgress(listener);
  const database = openDatabase(file, (schema) => progress.schemaBegins(schema));
  try {
    upgradeToJournal(database, progress);
    progress.done();
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
export function upgradeToJournal(database: OpenDatabase, progress = new UpgradeProgress(() => {})): number {
  const { sqlite } = database;
  if (!hasTables(sqlite)) return 0;
  let moved = 0;
  const scopes = new TableScopes(database);
  const move = new ScopeMove(database, scopes, () => progress.working());
  const count = waitingForLocks(() => scopes.count(), LOCK_WAIT_MS);
  if (count > 0) progress.scopesBegin(count);
  for (let after = 0; ; ) {
    const next = waitingForLocks(() => scopes.next(after), LOCK_WAIT_MS);
    if (next === null) break;
    after = next.scopeId;
    if (waitingForLocks(() => movedBy(move, next), LOCK_WAIT_MS)) moved++;
    progress.moved();
  }
  waitingForLocks(() => dropTables(database, scopes), LOCK_WAIT_MS);
  return moved;
}

/** An error names the scope by its number. Nothing is skipped: its users would find an empty scope in its place. */
function movedBy(move: ScopeMove, scope: NumberedScope): boolean {
  try {
    return move.run(scope);
  } catch (error) {
    // What is wrong with the disk or its locks says so by itself.
    if (faultOf(error) !== null || !(error instanceof Error)) throw error;
    const told = `scope ${scope.scopeId} of an earlier version cannot be moved into the journal (${error.message})`;
    throw new Error(`${told}; memstem check names its user; see docs/operations.md, "Upgrading"`, { cause: error });
  }
}

function dropTables({ sqlite }: OpenDatabase, scopes: TableScopes): void {
  const drop = sqlite.transaction(() => {
    if (!hasTables(sqlite) || scopes.next(0) !== null) return;
    for (const table of TABLES) sqlite.exec(`drop table ${table}`);
  });
  drop.immediate();
}
