import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { type LoadedUsers, loadEveryUser, quickCheck } from "../../src/cli/stored-users.js";
import { storeIn } from "../../src/store/sql-store.js";
import { DATABASE_FILE, openBeside } from "../../src/store/sqlite/open.js";

/** Checks a file as `memprefix doctor` does, on a copy: a service may be writing to it, and what a killed one left must stay as it is. */
export async function checkDatabase(file: string): Promise<LoadedUsers> {
  const findings = quickCheck(file);
  const directory = mkdtempSync(join(tmpdir(), "memprefix-checked-"));
  const copy = join(directory, DATABASE_FILE);
  try {
    const sqlite = new Database(file, { readonly: true, timeout: 5_000 });
    await sqlite.backup(copy).finally(() => sqlite.close());
    const store = storeIn(openBeside(dirname(copy)));
    const loaded = await loadEveryUser(store).finally(() => store.close());
    return { ...loaded, findings: [...findings, ...loaded.findings] };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
