import { JournalSnapshots, type ScopeSnapshot } from "../postgres/journal-snapshots.js";
import { openingError } from "../postgres/open-postgres.js";
import { isConnectionLost } from "../postgres/postgres-faults.js";
import { nameOfScope } from "./check-database.js";
import { MOST_FINDINGS, problemOf } from "./check-structure.js";
import { type CheckedScope, RECORDS_AT_ONCE, ScopeRecords } from "./scope-records.js";

/** Scopes that are listed together. */
const SCOPES_AT_ONCE = 500;

/** Result of a check of a server's database. Names users, never text. */
export interface ServerCheck {
  readonly scopes: number;
  readonly requests: number;
  /** A line each; empty: none. */
  readonly findings: readonly string[];
}

/**
 * Checks every scope on a PostgreSQL server as `checkDatabase` does those of a file: each in one read-only transaction, while instances run.
 * Pages and indexes are the server's own to check (`pg_amcheck`). Throws `DatabaseOpenError`.
 */
export async function checkPostgres(url: string): Promise<ServerCheck> {
  const snapshots = await JournalSnapshots.open(url);
  const findings: string[] = [];
  let scopes = 0;
  let requests = 0;
  try {
    for (let after = 0; findings.length < MOST_FINDINGS; ) {
      const ids = await snapshots.scopeIds(after, SCOPES_AT_ONCE);
      for (const id of ids) {
        if (findings.length >= MOST_FINDINGS) break;
        await snapshots.of(id, async (snapshot) => {
          scopes++;
          const name = nameOfScope(snapshot.row.scope);
          try {
            const checked = await checkScope(snapshots, snapshot);
            requests += checked.requests;
            for (const problem of checked.problems) findings.push(`${name}: ${problem}`);
          } catch (error) {
            // Nothing is wrong with the scope then.
            if (isConnectionLost(error)) throw openingError(url, error);
            findings.push(`${name}: ${problemOf(error)}`);
          }
        });
      }
      const last = ids.at(-1);
      if (last === undefined) break;
      after = last;
    }
  } finally {
    await snapshots.close();
  }
  return { scopes, requests, findings };
}

async function checkScope({ digests }: JournalSnapshots, snapshot: ScopeSnapshot): Promise<CheckedScope> {
  const { row, records: reads } = snapshot;
  const { scopeId } = row;
  const records = new ScopeRecords(scopeId, await snapshot.load(), digests);
  for (let after = 0; ; ) {
    const keys = await reads.list(scopeId, { after, most: RECORDS_AT_ONCE });
    records.takeRecords(await reads.read(keys.map(({ seq }) => seq)), keys.length);
    const last = keys.at(-1);
    if (last === undefined) break;
    after = last.n;
  }
  for (const piece of records.referred) records.takeShared(piece, await reads.shared(scopeId, piece));
  const found = [];
  for (const ids of records.requestIds) found.push(await reads.withRequests({ scopeId }, ids));
  return records.finish({
    memories: await snapshot.memories(),
    responses: await snapshot.responses(),
    found: found.flat(),
  });
}
