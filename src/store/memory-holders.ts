import { and, eq, gt, lte, sql } from "drizzle-orm";
import type { OpenDatabase } from "./open-database.js";
import { readScope } from "./rows.js";
import { memoryVersions, users } from "./schema.js";
import type { ScopesFound } from "./store.js";

/** Rows that are looked through at once: about two milliseconds. */
const ROWS_AT_ONCE = 20_000;

/**
 * Scopes of a tenant that have, or had, a memory. There is no index for it: every compose would pay for one, and this is rare. So it
 * looks through the rows from `after` on, so many at a time.
 */
export function readScopesWithMemory(
  orm: OpenDatabase["orm"],
  tenant: string,
  memoryId: string,
  after: number,
): ScopesFound {
  const rowid = sql<number>`${memoryVersions}.rowid`;
  const to = after + ROWS_AT_ONCE;
  const scopes = orm
    .selectDistinct({ users })
    .from(memoryVersions)
    .innerJoin(users, eq(users.scopeId, memoryVersions.scopeId))
    .where(and(gt(rowid, after), lte(rowid, to), eq(memoryVersions.memoryId, memoryId), eq(users.tenant, tenant)))
    .all()
    .map((row) => readScope(row.users));
  const last = orm.select({ rowid: sql<number | null>`max(rowid)` }).from(memoryVersions).get()?.rowid ?? 0;
  return { scopes, next: last > to ? to : null };
}
