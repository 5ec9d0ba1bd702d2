import { openDatabase } from "../database/open-database.js";

/**
 * Makes the indexes of a database file again from its rows, in one transaction: for a file whose rows are whole, and whose indexes are not.
 * Nobody else can write meanwhile. Throws `DatabaseOpenError`, or SQLite's errors where rows are damaged, too; then nothing is changed.
 */
export function rebuildIndexes(file: string): void {
  const { sqlite } = openDatabase(file);
  try {
    sqlite.exec("reindex");
  } finally {
    sqlite.close();
  }
}
