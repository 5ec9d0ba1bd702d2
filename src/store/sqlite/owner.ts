import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { parsedJson, record } from "../../core/text/json.js";
import { DatabaseOpenError } from "../open-error.js";
import { faultOf } from "./faults.js";

/** The file whose lock makes a process the owner of a data directory; and the owner's pid and address. */
const LOCK = "owner.db";
const SAYS = "owner.json";

/** The right to write a data directory's database; one process has it. */
export interface Ownership {
  readonly announce: (address: string) => void;
  readonly release: () => void;
}

/** Makes this process the owner of a data directory, until it dies. Throws `DatabaseOpenError` with another owner's pid and address. */
export function own(directory: string): Ownership {
  const lock = new Database(join(directory, LOCK), { timeout: 0 });
  try {
    lock.pragma("locking_mode = EXCLUSIVE");
    lock.exec("begin exclusive");
  } catch (error) {
    lock.close();
    if (faultOf(error) !== "busy") throw error;
    throw new DatabaseOpenError(directory, otherOwner(directory), { cause: error });
  }
  const says = join(directory, SAYS);
  const say = (address: string | null) => writeFileSync(says, JSON.stringify({ pid: process.pid, address }));
  say(null);
  return {
    announce: say,
    release() {
      rmSync(says, { force: true });
      lock.close();
    },
  };
}

/** What to do if another process owns the directory. */
function otherOwner(directory: string): string {
  const file = join(directory, SAYS);
  const said = record(existsSync(file) ? parsedJson(readFileSync(file, "utf8")) : null);
  const pid = typeof said["pid"] === "number" ? ` ${said["pid"]}` : "";
  const address = typeof said["address"] === "string" ? said["address"] : null;
  const instead = address === null ? "the service that it runs" : `its service at ${address}`;
  return `process${pid} uses it; use ${instead}, another MEMPREFIX_DATA_DIR, or PostgreSQL for several processes (MEMPREFIX_DATABASE_URL)`;
}
