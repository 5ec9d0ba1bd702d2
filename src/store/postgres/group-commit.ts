import type pg from "pg";
import { type DeletionCounts, isSameVersion } from "../api/store.js";
import { bucketOf, type DigestSeal } from "../database/digest-seal.js";
import { named } from "../database/sql.js";
import type { JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { numberOf, RECORD_COLUMNS, type RecordRow, scopeKey } from "../journal/journal-sql.js";
import { ask } from "./connections.js";
import { applyUnits, type ClaimedUnit, isEnd, numberedRecords, readRewritten, sumBehind } from "./unit-changes.js";

/** A unit with what it is locked by; see {@link lockedUnit}. */
export interface LockedUnit {
  readonly unit: JournalUnit;
  readonly bucket: number;
  readonly lock: string;
  /** Whether it may be stored already: the connection was lost when its outcome was under way. */
  isUncertain: boolean;
}

/** The outcome of a unit; `stale`: it does not build on what is stored, and changed nothing. */
export type UnitOutcome = WrittenUnit | "stale";

/**
 * A unit with its locks: parts of keyed hashes of names, so that they name nobody, and no tenant can choose a user that collides with
 * another's. Two scopes with one lock would only wait for each other.
 */
export function lockedUnit(unit: JournalUnit, digests: DigestSeal): LockedUnit {
  const lock = digests
    .hashOf(JSON.stringify(scopeKey(unit.scope)))
    .readBigInt64BE(0)
    .toString();
  return { unit, bucket: bucketOf(unit.scope, digests), lock, isUncertain: false };
}

/** Names the locks of buckets among other advisory locks of the database. */
const BUCKET_LOCKS = 0x6d656d73;

const STATEMENTS = named("group", {
  /**
   * Locks of buckets are shared, but for units that count a deletion. All transactions take them in one order, buckets first: no two wait for
   * each other. An advisory lock writes nothing, unlike a row's.
   */
  lockBuckets: `select case when is_deleting then pg_advisory_xact_lock(${BUCKET_LOCKS}, bucket)::text
      else pg_advisory_xact_lock_shared(${BUCKET_LOCKS}, bucket)::text end
    from unnest($1::integer[], $2::boolean[]) as locked (bucket, is_deleting)`,
  lockScopes: "select pg_advisory_xact_lock(k) from unnest($1::bigint[]) as locked (k)",
  /** A statement of its own after the locks, so that it sees all that was committed before they were granted. */
  claim: `select s.scope_id as "scopeId", coalesce(l.n, 0) as commits, coalesce(l.sum, 0) as sum,
      coalesce(d.users, 0) as users, coalesce(d.memories, 0) as memories
    from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) with ordinality as u (tenant, user_id, agent_id, bucket, at)
    left join scopes s on s.tenant = u.tenant and s.user_id = u.user_id and s.agent_id = u.agent_id
    left join lateral (select n, sum from journal where scope_id = s.scope_id order by n desc limit 1) l on true
    left join deletions d on d.bucket = u.bucket
    order by u.at`,
  create: `insert into scopes (tenant, user_id, agent_id, created_at)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
    returning scope_id as "scopeId", tenant, user_id as "userId", agent_id as "agentId"`,
  record: `select ${RECORD_COLUMNS} from journal j where j.scope_id = $1 and j.n = $2`,
});

/** Locks buckets in the transaction that is under way: those of `deleting` alone, the others shared. */
export function lockBuckets(
  client: pg.ClientBase,
  buckets: readonly number[],
  deleting: ReadonlySet<number> = new Set(),
): Promise<unknown> {
  const sorted = [...new Set(buckets)].sort((a, b) => a - b);
  return ask(client, STATEMENTS.lockBuckets, [sorted, sorted.map((bucket) => deleting.has(bucket))]);
}

interface Claim extends DeletionCounts {
  readonly scopeId: number | null;
  readonly commits: number;
  readonly sum: number;
}

/**
 * Commits units of different scopes in one transaction; those that are stale are left out, or (`isTogether`) all are. Two round trips, and one
 * more where a scope is new or something is rewritten. Rejects with the driver's error, and then nothing is stored, unless `onSending` was
 * called and the connection lost: it is called when the transaction's end is sent.
 */
export async function commitGroup(
  client: pg.ClientBase,
  units: readonly LockedUnit[],
  isTogether: boolean,
  onSending: () => void,
): Promise<UnitOutcome[]> {
  const claims = await claim(client, units);
  const isStored = await Promise.all(units.map((unit, at) => isStoredAlready(client, unit, claims[at])));
  const outcomes = units.map((unit, at): UnitOutcome | "applied" =>
    isStored[at] === true ? storedBefore(unit.unit, claims[at]) : isCurrent(unit, claims[at]) ? "applied" : "stale",
  );
  if (!outcomes.includes("applied") || (isTogether && outcomes.includes("stale"))) {
    await client.query("rollback");
    return outcomes.map((outcome) => (outcome === "applied" ? "stale" : outcome));
  }
  const claimed = await withScopes(
    client,
    units.flatMap((unit, at) => (outcomes[at] === "applied" ? [{ ...unit, ...(claims[at] as Claim) }] : [])),
  );
  const rewritten = await readRewritten(client, claimed);
  onSending();
  await Promise.all([...applyUnits(client, claimed, rewritten), client.query("commit")]);
  const byUnit = new Map(claimed.map((one) => [one.unit, one]));
  return units.map(({ unit }, at) => {
    const outcome = outcomes[at] as UnitOutcome | "applied";
    return outcome === "applied" ? written(byUnit.get(unit) as ClaimedUnit, rewritten) : outcome;
  });
}

/** Begins the transaction and locks; gives what is stored of each unit's scope. */
async function claim(client: pg.ClientBase, units: readonly LockedUnit[]): Promise<Claim[]> {
  const buckets = units.map(({ bucket }) => bucket);
  const locks = units.map(({ lock }) => BigInt(lock)).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const [, , , claims] = await Promise.all([
    client.query("begin"),
    lockBuckets(client, buckets, new Set(units.flatMap(({ bucket, unit }) => (unit.deletion ? [bucket] : [])))),
    ask(client, STATEMENTS.lockScopes, [locks.map(String)]),
    ask<Claim>(client, STATEMENTS.claim, [
      units.map(({ unit }) => unit.scope.tenant),
      units.map(({ unit }) => unit.scope.userId),
      units.map(({ unit }) => unit.scope.agentId ?? ""),
      buckets,
    ]),
  ]);
  return claims;
}

function isCurrent({ unit, isUncertain }: LockedUnit, claim: Claim | undefined): boolean {
  if (claim === undefined) return false;
  const { version, deletions } = unit;
  if (deletions !== null && (deletions.users !== claim.users || deletions.memories !== claim.memories)) return false;
  const { scopeId, commits, sum } = claim;
  if (version === null || scopeId === null) return version === null && scopeId === null;
  // One without records may have rewritten the newest record already.
  return isSameVersion(isUncertain ? { ...version, sum: undefined } : version, { scopeId, commits, sum });
}

function written(claimed: ClaimedUnit, rewritten: ReadonlyMap<number, RecordRow>): WrittenUnit {
  const { unit, scopeId, commits, records } = claimed;
  if (isEnd(unit)) return { version: null };
  return { version: { scopeId, commits: commits + records.length, sum: sumBehind(claimed, rewritten) } };
}

/** The outcome of a unit that is found stored; others may have been since. */
function storedBefore(unit: JournalUnit, claim: Claim | undefined): WrittenUnit {
  const { scopeId = null } = claim ?? {};
  if (isEnd(unit) || scopeId === null) return { version: null };
  const commits = unit.version?.commits ?? 0;
  const last = numberedRecords(unit, scopeId, commits).at(-1);
  return { version: { scopeId, commits: last?.n ?? commits, sum: last?.sum ?? unit.version?.sum } };
}

/**
 * Whether a unit whose outcome was not heard of is stored: whether its first record is what stands after the version that it builds on. A
 * request's own id is enough, as the record may have been rewritten since. A unit without records changes nothing when it is run twice.
 */
async function isStoredAlready(client: pg.ClientBase, locked: LockedUnit, claim: Claim | undefined): Promise<boolean> {
  const { unit, isUncertain } = locked;
  if (!isUncertain || claim === undefined) return false;
  if (claim.scopeId === null) return isEnd(unit);
  if (unit.version !== null && unit.version.scopeId !== claim.scopeId) return isEnd(unit);
  const [first] = numberedRecords(unit, claim.scopeId, unit.version?.commits ?? 0);
  if (first === undefined) return false;
  const { record, n, sum } = first;
  const [row] = await ask<RecordRow>(client, STATEMENTS.record, [claim.scopeId, n]);
  if (row === undefined || row.at !== record.at) return false;
  const isSameRequest =
    record.requestId !== null && record.requestId === row.requestId && numberOf(record.kind) === row.kind;
  return isSameRequest || sum === row.sum;
}

/** Creates the scopes of units that begin one. */
async function withScopes(
  client: pg.ClientBase,
  claims: readonly (LockedUnit & Claim)[],
): Promise<(ClaimedUnit & LockedUnit)[]> {
  const scopes = claims.flatMap(({ scopeId, unit }) => (scopeId === null ? [unit] : []));
  const claimedAs = (one: LockedUnit & Claim, scopeId: number) => {
    return { ...one, scopeId, records: numberedRecords(one.unit, scopeId, one.commits) };
  };
  if (scopes.length === 0) return claims.map((one) => claimedAs(one, one.scopeId as number));
  const rows = await ask<{ scopeId: number; tenant: string; userId: string; agentId: string }>(
    client,
    STATEMENTS.create,
    [
      scopes.map(({ scope }) => scope.tenant),
      scopes.map(({ scope }) => scope.userId),
      scopes.map(({ scope }) => scope.agentId ?? ""),
      scopes.map(({ at }) => at),
    ],
  );
  const nameOf = (tenant: string, userId: string, agentId: string) => JSON.stringify([tenant, userId, agentId]);
  const ids = new Map(rows.map((row) => [nameOf(row.tenant, row.userId, row.agentId), row.scopeId]));
  return claims.map((one) => {
    const { tenant, userId } = one.unit.scope;
    const created = ids.get(nameOf(tenant, userId, one.unit.scope.agentId ?? "")) as number;
    return claimedAs(one, one.scopeId ?? created);
  });
}
