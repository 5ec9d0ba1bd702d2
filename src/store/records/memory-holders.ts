import { and, asc, eq, gt, lte } from "drizzle-orm";
import type { ScopesFound } from "../api/store.js";
import type { OpenDatabase } from "../database/open-database.js";
import { memoryVersions, scopes } from "../database/schema.js";
import { readScope } from "./rows.js";

/** Rows that are looked through at once, and those of the scope that they end in: about two milliseconds. */
const ROWS_AT_ONCE = 20_000;

/**
 * Scopes of a tenant that have, or had, a memory. There is no index for it: every compose would pay for one, and this is rare. So it
 * looks through the rows of scopes behind `after`, so many at a time.
 */
export function readScopesWithMemory(
  orm: OpenDatabase["orm"],
  tenant: string,
  memoryId: string,
  after: number,
): ScopesFound {
  const { scopeId } = memoryVersions;
  const [end] = orm
    .select({ scopeId })
    .from(memoryVersions)
    .where(gt(scopeId, after))
    .orderBy(asc(scopeId))
    .limit(1)
    .offset(ROWS_AT_ONCE)
    .all();
  const isLookedThrough = and(gt(scopeId, after), end === undefined ? undefined : lte(scopeId, end.scopeId));
  const holders = orm
    .selectDistinct({ scope: scopes })
    .from(memoryVersions)
    .innerJoin(scopes, eq(scopes.scopeId, scopeId))
    .where(and(isLookedThrough, eq(memoryVersions.memoryId, memoryId), eq(scopes.tenant, tenant)))
    .all()
    .map((row) => readScope(row.scope));
  return { scopes: holders, next: end?.scopeId ?? null };
}
