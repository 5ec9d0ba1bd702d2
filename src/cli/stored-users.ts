import Database from "better-sqlite3";
import { messageOf } from "../core/text/thrown.js";
import { stateOf } from "../store/cuts.js";
import { openProblem } from "../store/sqlite/open.js";
import { type Store, StoreUnavailableError, type User } from "../store/store.js";

/** How long a check waits for another process's lock. */
const WAIT_MS = 5_000;

/** After this many damaged users the rest are not read. */
const MAX_FINDINGS = 100;

export interface LoadedUsers {
  readonly users: number;
  readonly requests: number;
  /** One line for each user that cannot be loaded. It names the user, never text. */
  readonly findings: readonly string[];
}

/** Loads every user's stored data and reports what cannot be read. A service may be running. */
export async function loadEveryUser(store: Store): Promise<LoadedUsers> {
  const findings: string[] = [];
  let count = 0;
  let requests = 0;
  for (let after: number | null = 0; after !== null; ) {
    const { users, next } = await store.users(after);
    for (const user of users) {
      if (findings.length >= MAX_FINDINGS) return { users: count, requests, findings };
      count++;
      try {
        requests += await loadUser(store, user);
      } catch (error) {
        findings.push(`user ${JSON.stringify(user.tenant)} ${JSON.stringify(user.userId)}: ${reasonOf(error)}`);
      }
    }
    after = next;
  }
  return { users: count, requests, findings };
}

/** Returns the number of stored requests. */
async function loadUser(store: Store, user: User): Promise<number> {
  for (const scope of await store.scopesOf(user))
    await store.hold(scope, null, async ({ newer }) => {
      if (newer === null) return;
      const { index, published } = stateOf(newer);
      index.check();
      published.clusters.check();
    });
  const { scopes } = await store.exportUser(user);
  return scopes.reduce((count, { tables }) => count + (tables["requests"]?.length ?? 0), 0);
}

function reasonOf(error: unknown): string {
  // The store's error says that something is damaged; its cause says what.
  return messageOf(error instanceof StoreUnavailableError && error.cause instanceof Error ? error.cause : error);
}

/** Findings of SQLite's quick check of a file, a line each. Another process may be writing to it. */
export function quickCheck(file: string): string[] {
  try {
    const sqlite = new Database(file, { readonly: true, timeout: WAIT_MS });
    try {
      const lines = sqlite.prepare<[], string>("pragma quick_check").pluck().all();
      return lines.filter((line) => line !== "ok");
    } finally {
      sqlite.close();
    }
  } catch (error) {
    return [openProblem(error)];
  }
}
