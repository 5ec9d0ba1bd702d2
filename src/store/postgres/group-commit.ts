import type pg from "pg";
import { type DeletionCounts, isSameVersion } from "../api/store.js";
import type { JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { ask } from "./connections.js";
import { type LockedUnit, lockBuckets, lockScopes, type UnitOutcome } from "./locks.js";
import { agentColumn, newestRecord, numberOf, ROW_COLUMNS, type StoredRecordRow } from "./rows.js";
import { SCHEMA } from "./schema.js";
import { applyUnits, type ClaimedUnit, isEnd, numberedRecords, readRewritten, sumBehind } from "./unit-changes.js";

interface Claim extends DeletionCounts {
  readonly scopeId: number | null;
  readonly commits: number;
  readonly sum: number;
}

/** A statement of its own after the locks, so that it sees all that was committed before they were granted. */
const CLAIM = {
  name: "claim",
  text: `select s.scope_id as "scopeId",
      coalesce(l.n, 0) as commits, coalesce(l.sum, 0) as sum,
      coalesce(d.users, 0) as users, coalesce(d.memories, 0) as memories
    from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) with ordinality as u (tenant, user_id, agent_id, bucket, at)
    left join ${SCHEMA}.scopes s on s.tenant = u.tenant and s.user_id = u.user_id and s.agent_id = u.agent_id
    left join ${newestRecord("s.scope_id")} l on true
    left join ${SCHEMA}.deletions d on d.bucket = u.bucket
    order by u.at`,
};

const CREATE = {
  name: "create_scopes",
  text: `insert into ${SCHEMA}.scopes (tenant, user_id, agent_id, created_at)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
    returning scope_id as "scopeId", tenant, user_id as "userId", agent_id as "agentId"`,
};

const RECORD = {
  name: "record",
  text: `select ${ROW_COLUMNS} from ${SCHEMA}.journal j where j.scope_id = $1 and j.n = $2`,
};

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
  const [, , , claims] = await Promise.all([
    client.query("begin"),
    lockBuckets(
      client,
      units.map(({ bucket, unit }) => ({ bucket, isDeleting: unit.deletion !== undefined })),
    ),
    lockScopes(
      client,
      units.map(({ lock }) => lock),
    ),
    ask<Claim>(client, CLAIM, [
      units.map(({ unit }) => unit.scope.tenant),
      units.map(({ unit }) => unit.scope.userId),
      units.map(({ unit }) => agentColumn(unit.scope)),
      units.map(({ bucket }) => bucket),
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

function written(claimed: ClaimedUnit, rewritten: ReadonlyMap<number, StoredRecordRow>): WrittenUnit {
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
  const [row] = await ask<StoredRecordRow>(client, RECORD, [claim.scopeId, n]);
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
  const rows = await ask<{ scopeId: number; tenant: string; userId: string; agentId: string }>(client, CREATE, [
    scopes.map(({ scope }) => scope.tenant),
    scopes.map(({ scope }) => scope.userId),
    scopes.map(({ scope }) => agentColumn(scope)),
    scopes.map(({ at }) => at),
  ]);
  const nameOf = (tenant: string, userId: string, agentId: string) => JSON.stringify([tenant, userId, agentId]);
  const ids = new Map(rows.map((row) => [nameOf(row.tenant, row.userId, row.agentId), row.scopeId]));
  return claims.map((one) => {
    const { tenant, userId } = one.unit.scope;
    const created = ids.get(nameOf(tenant, userId, agentColumn(one.unit.scope))) as number;
    return claimedAs(one, one.scopeId ?? created);
  });
}
