import { and, asc, eq, gt, lte } from "drizzle-orm";
import type { ScopesFound } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { scopes } from "../../../src/store/database/schema.js";
import { readScope } from "../../../src/store/database/scope-key.js";
import { memoryVersions } from "../../../src/store/upgrade/table-schema.js";

/** Rows per page, plus the rest of the last scope: about two milliseconds. */
const ROWS_AT_ONCE = 20_000;

/**
 * See `Store.scopesWithMemory`. A scan without an index, because every compose would pay for one and this is rare; page by page, over the
 * scopes with numbers above `after`.
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
