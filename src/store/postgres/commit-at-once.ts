import type pg from "pg";
import type { JournalChange, WrittenUnit } from "../journal/journal-database.js";
import { sumOfSnapshot } from "../journal/record-sum.js";
import { lockBuckets, lockScopes } from "./advisory-locks.js";
import { ask } from "./connections.js";
import type { LockedUnit, UnitOutcome } from "./locked-unit.js";
import { agentColumn, newestRecord } from "./rows.js";
import { SCHEMA } from "./schema.js";
import type { ScopeNumbers } from "./scope-numbers.js";
import {
  type ClaimedUnit,
  JOURNAL,
  journalRows,
  MEMORIES,
  memoryRows,
  numberedRecords,
  ROWS_AT_ONCE,
  type Table,
} from "./unit-changes.js";

/*
 * A group in one round trip: every statement itself finds out whether a unit is current, and nothing is read before. For units that append
 * records, as almost all do; a compose waits for the network once.
 */

/** A unit whose scope and version are taken for what is stored. */
interface AssumedUnit extends LockedUnit, Omit<ClaimedUnit, "unit" | "bucket"> {}

type PlainChange = Exclude<
  JournalChange,
  { readonly kind: "rewrite" | "remove" | "remove-shared" | "forget" | "remove-responses" | "end" }
>;

/** What finds a scope by name. */
const NAME: Table["columns"] = [
  ["tenant", "text"],
  ["user_id", "text"],
  ["agent_id", "text"],
];
const SCOPES: Table = { name: "scopes", columns: [["scope_id", "bigint"], ...NAME, ["created_at", "bigint"]] };
const SNAPSHOTS: Table = {
  name: "snapshots",
  columns: [
    ["scope_id", "bigint"],
    ["n", "integer"],
    ["sum", "bigint"],
    ["data", "text"],
  ],
};
const SHARED: Table = {
  name: "instructions",
  columns: [
    ["scope_id", "bigint"],
    ["digest", "text"],
    ["messages", "text"],
  ],
};

/** What a unit takes for stored: the number and checksum of the newest record; its user's bucket, and the deletions in it. */
const ASSUMED = [
  ["base_n", "integer"],
  ["base_sum", "bigint"],
  ["bucket", "integer"],
  ["users", "bigint"],
  ["memories", "bigint"],
] as const;

const OF_BUCKET = `left join ${SCHEMA}.deletions d on d.bucket = r.bucket`;
const NOT_DELETED = "(r.users is null or (coalesce(d.users, 0) = r.users and coalesce(d.memories, 0) = r.memories))";
/** Whether a row was written by this transaction. */
const OURS = "xmin = pg_current_xact_id()::xid";

/** Without a row where the scope exists. */
const CREATED = `${OF_BUCKET} where ${NOT_DELETED} on conflict do nothing`;
/** A scope's first record needs the scope to be new; any other one, the record that it stands behind. */
const CURRENT = `join ${SCHEMA}.scopes s on s.scope_id = r.scope_id
    and s.tenant = r.tenant and s.user_id = r.user_id and s.agent_id = r.agent_id
  left join ${newestRecord("r.scope_id")} l on true ${OF_BUCKET}
  where ${NOT_DELETED} and case when r.base_n = 0 then l.n is null and s.${OURS}
    else l.n = r.base_n and l.sum = r.base_sum end
  returning scope_id as "scopeId"`;
/** What comes with a record is written where that one was. */
const WITH_RECORD = `where exists
  (select from ${SCHEMA}.journal j where j.scope_id = r.scope_id and j.n = r.behind and j.${OURS})`;
const BEHIND = [["behind", "integer"]] as const;
const AS_SNAPSHOT = `${WITH_RECORD}
  on conflict (scope_id) do update set n = excluded.n, sum = excluded.sum, data = excluded.data`;
const AS_SHARED = `${WITH_RECORD} on conflict (scope_id, digest) do nothing`;

/** The group as units that are taken for current; null where one has to be looked at first, and where no number is left for a new scope. */
export function assumedCurrent(units: readonly LockedUnit[], numbers: ScopeNumbers): readonly AssumedUnit[] | null {
  const assumed: AssumedUnit[] = [];
  let rows = 0;
  for (const one of units) {
    const { unit, isUncertain } = one;
    const { version, changes, deletion } = unit;
    if (isUncertain || deletion !== undefined || !changes.every(isPlain)) return null;
    // A scope without a record was one of an earlier version's.
    if (version !== null && (version.commits === 0 || version.sum === undefined)) return null;
    const scopeId = version?.scopeId ?? numbers.take();
    if (scopeId === null) return null;
    const commits = version?.commits ?? 0;
    const records = numberedRecords(unit, scopeId, commits);
    rows += records.length;
    // A second statement would find the first one's records.
    if (records.length === 0 || rows > ROWS_AT_ONCE) return null;
    // Which of them is stored is told by the scope's number.
    if (assumed.some((other) => other.scopeId === scopeId)) return null;
    assumed.push({ ...one, scopeId, commits, sum: version?.sum ?? 0, records });
  }
  return assumed;
}

function isPlain(change: JournalChange): change is PlainChange {
  switch (change.kind) {
    case "append":
    case "memories":
    case "snapshot":
      return true;
    case "keep-shared":
      return !change.replace;
    default:
      return false;
  }
}

/**
 * Commits units of different scopes in one transaction; those that are stale change nothing. Rejects as `commitGroup` does; everything is
 * sent at once, so the outcome of a lost connection is not known.
 */
export async function commitAtOnce(client: pg.ClientBase, units: readonly AssumedUnit[]): Promise<UnitOutcome[]> {
  const [, , , , applied] = await Promise.all([
    client.query("begin"),
    lockBuckets(
      client,
      units.map(({ bucket }) => ({ bucket, isDeleting: false })),
    ),
    lockScopes(
      client,
      units.map(({ lock }) => lock),
    ),
    insert(client, SCOPES, ASSUMED, units.filter(({ unit }) => unit.version === null).map(scopeRow), CREATED),
    insert<{ scopeId: number }>(client, JOURNAL, [...NAME, ...ASSUMED], units.flatMap(recordRows), CURRENT),
    insert(client, MEMORIES, BEHIND, units.flatMap(memoriesOf), WITH_RECORD),
    insert(client, SNAPSHOTS, BEHIND, units.flatMap(snapshotsOf), AS_SNAPSHOT),
    insert(client, SHARED, BEHIND, units.flatMap(sharedOf), AS_SHARED),
    client.query("commit"),
  ]);
  const stored = new Set(applied.map(({ scopeId }) => scopeId));
  return units.map((one) => (stored.has(one.scopeId) ? written(one) : "stale"));
}

/** Inserts rows that have what their condition reads behind the columns of their table. Sends without waiting for what was sent before. */
async function insert<Row extends pg.QueryResultRow>(
  client: pg.ClientBase,
  { name, columns }: Table,
  read: Table["columns"],
  rows: readonly (readonly unknown[])[],
  condition: string,
): Promise<Row[]> {
  const names = columns.map(([column]) => column).join(", ");
  const all = [...columns, ...read];
  const sent: Promise<Row[]>[] = [];
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    const some = rows.slice(from, from + ROWS_AT_ONCE);
    // The first row says what the others are, too.
    const places = some.map((_, row) =>
      all.map(([, type], at) => `$${row * all.length + at + 1}${row === 0 ? `::${type}` : ""}`).join(", "),
    );
    const text = `insert into ${SCHEMA}.${name} (${names}) overriding system value
      select ${columns.map(([column]) => `r.${column}`).join(", ")}
      from (values ${places.map((row) => `(${row})`).join(", ")}) as r (${all.map(([column]) => column).join(", ")})
      ${condition}`;
    sent.push(ask<Row>(client, { name: `at_once_${name}_${some.length}`, text }, some.flat()));
  }
  return (await Promise.all(sent)).flat();
}

function assumptionsOf({ unit, bucket, commits, sum }: AssumedUnit): readonly unknown[] {
  return [commits, sum, bucket, unit.deletions?.users ?? null, unit.deletions?.memories ?? null];
}

function nameOf({ unit: { scope } }: AssumedUnit): readonly string[] {
  return [scope.tenant, scope.userId, agentColumn(scope)];
}

function scopeRow(one: AssumedUnit): readonly unknown[] {
  return [one.scopeId, ...nameOf(one), one.unit.at, ...assumptionsOf(one)];
}

function recordRows(one: AssumedUnit): readonly (readonly unknown[])[] {
  const read = [...nameOf(one), ...assumptionsOf(one)];
  return journalRows(one).map((row) => [...row, ...read]);
}

function memoriesOf(one: AssumedUnit): readonly (readonly unknown[])[] {
  return memoryRows(one).map((row) => [...row, lastOf(one).n]);
}

function snapshotsOf(one: AssumedUnit): readonly (readonly unknown[])[] {
  const { n } = lastOf(one);
  return one.unit.changes.flatMap((change) => {
    if (change.kind !== "snapshot") return [];
    return [[one.scopeId, n, sumOfSnapshot(one.scopeId, { n, data: change.data }), change.data, n]];
  });
}

function sharedOf(one: AssumedUnit): readonly (readonly unknown[])[] {
  const { n } = lastOf(one);
  return one.unit.changes.flatMap((change) =>
    change.kind === "keep-shared" ? change.rows.map((row) => [one.scopeId, row.digest, row.messages, n]) : [],
  );
}

function written(one: AssumedUnit): WrittenUnit {
  const { n, sum } = lastOf(one);
  return { version: { scopeId: one.scopeId, commits: n, sum } };
}

function lastOf({ records }: AssumedUnit): AssumedUnit["records"][number] {
  const last = records.at(-1);
  if (last === undefined) throw new Error("a unit that is committed at once has records");
  return last;
}
