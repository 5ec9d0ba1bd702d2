import Database from "better-sqlite3";

/** Everything at once, so that what is written meanwhile does not make SQLite begin anew; writers do not wait for it in WAL mode. */
const ALL_PAGES = 0x7fff_ffff;

/**
 * Copies a database file as it is at one moment into a new file, by SQLite's online backup, while other processes read and write it.
 * The copy is on the disk when this resolves. Rejects with SQLite's error, or with the file system's.
 */
export async function backupDatabase(from: string, to: string): Promise<void> {
  const source = new Database(from, { readonly: true, fileMustExist: true, timeout: 5_000 });
  try {
    await source.backup(to, { progress: () => ALL_PAGES });
  } finally {
    source.close();
  }
}
