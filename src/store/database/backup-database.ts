import Database from "better-sqlite3";

/** All pages in one step: between steps a write would make SQLite restart the copy. In WAL mode writers do not wait for it. */
const ALL_PAGES = 0x7fff_ffff;

/**
 * Copies a consistent snapshot of a database file into a new file by SQLite's online backup, while other processes read and write.
 * Durable when it resolves. Rejects with an error of SQLite or of the file system.
 */
export async function backupDatabase(from: string, to: string): Promise<void> {
  const source = new Database(from, { readonly: true, fileMustExist: true, timeout: 5_000 });
  try {
    await source.backup(to, { progress: () => ALL_PAGES });
  } finally {
    source.close();
  }
}
