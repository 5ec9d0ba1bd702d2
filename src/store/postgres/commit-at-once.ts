import type pg from "pg";
import { sumOfSnapshot } from "../journal/damaged-record.js";
import type { JournalChange, JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { ask } from "./connections.js";
import { BUCKET_LOCKS, type LockedUnit, sortedLocks, type UnitOutcome } from "./locks.js";
import { agentColumn, numberOf } from "./rows.js";
import { SCHEMA } from "./schema.js";
import type { ScopeNumbers } from "./scope-numbers.js";
import { knownMemories, type NumberedRecord, numberedRecords } from "./unit-changes.js";

/*
 * A group in one round trip: a function of the database (migration 0003) locks, finds out which units are current, and stores those. For
 * units that append records, as almost all do; a compose waits for the network once.
 */

/** A unit whose scope and version are taken for what is stored. */
interface AssumedUnit {
  readonly locked: LockedUnit;
  readonly scopeId: number;
  /** What it appends; there is one at least. */
  readonly records: readonly NumberedRecord[];
}

/** Texts are handed over apart from the rows, as they are; the statement for each number of them is prepared once per connection. */
const BODIES_STEP = 8;
/** Most texts of one call, so that there are few such statements. */
const MOST_BODIES = 256;

/**
 * The group as units that are taken for current; null where one has to be looked at first, where no number is left for a new scope, and
 * where there is more than fits into one call.
 */
export function assumedCurrent(units: readonly LockedUnit[], numbers: ScopeNumbers): readonly AssumedUnit[] | null {
  if (!units.every(isPlain) || units.reduce((sum, { unit }) => sum + bodiesOf(unit), 0) > MOST_BODIES) return null;
  const assumed: AssumedUnit[] = [];
  for (const one of units) {
    const { version } = one.unit;
    const scopeId = version?.scopeId ?? numbers.take();
    if (scopeId === null) return null;
    const records = numberedRecords(one.unit, scopeId, version?.commits ?? 0);
    // The scope's number identifies the stored one.
    if (records.length === 0 || assumed.some((other) => other.scopeId === scopeId)) return null;
    assumed.push({ locked: one, scopeId, records });
  }
  return assumed;
}

function isPlain({ unit: { version, changes, deletion }, isUncertain }: LockedUnit): boolean {
  // The function compares a unit's base with the scope's newest record.
  const hasRecord = version === null || (version.commits > 0 && version.sum !== undefined);
  return !isUncertain && deletion === undefined && hasRecord && changes.every(isPlainChange);
}

/** How many texts a unit brings, at most. */
function bodiesOf({ changes }: JournalUnit): number {
  let bodies = 0;
  for (const change of changes) {
    if (change.kind === "append") bodies += 2 * change.records.length;
    else if (change.kind === "snapshot") bodies++;
    else if (change.kind === "keep-shared") bodies += change.rows.length;
  }
  return bodies;
}

function isPlainChange(change: JournalChange): boolean {
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
  const { buckets, locks } = sortedLocks(units.map(({ locked }) => locked));
  const bodies = new Bodies();
  const rows = [
    units.filter(({ locked }) => locked.unit.version !== null).map(scopeRow),
    units.filter(({ locked }) => locked.unit.version === null).map(scopeRow),
    units.flatMap((one) => recordRows(one, bodies)),
    units.flatMap(memoryRows),
    units.flatMap((one) => snapshotRows(one, bodies)),
    units.flatMap((one) => sharedRows(one, bodies)),
  ];
  const json = rows.map((some) => (some.length === 0 ? null : JSON.stringify(some)));
  const texts = bodies.padded();
  const stored = await ask<{ scopeId: number }>(client, statementFor(texts.length), [
    BUCKET_LOCKS,
    `{${buckets.join()}}`,
    `{${locks.join()}}`,
    ...json,
    ...texts,
  ]);
  const scopeIds = new Set(stored.map(({ scopeId }) => scopeId));
  return units.map((one) => (scopeIds.has(one.scopeId) ? written(one) : "stale"));
}

function statementFor(bodies: number) {
  const places = Array.from({ length: bodies }, (_, at) => `$${at + 10}`);
  return {
    name: `commit_units_${bodies}`,
    text: `select commit_units as "scopeId" from ${SCHEMA}.commit_units(
      $1, $2, $3, $4, $5, $6, $7, $8, $9, array[${places.join(", ")}]::text[])`,
  };
}

/** The texts of a group's rows, which refer to them by their places. */
class Bodies {
  readonly #texts: (string | null)[] = [];

  /** The place of a text, from 1. */
  add(text: string | null): number | null {
    return text === null ? null : this.#texts.push(text);
  }

  padded(): readonly (string | null)[] {
    while (this.#texts.length % BODIES_STEP > 0) this.#texts.push(null);
    return this.#texts;
  }
}

/** Rows of the function's parameters `units` and `scopes`: with the same columns, of which each has some. */
function scopeRow({ locked: { unit, bucket }, scopeId }: AssumedUnit): object {
  const { scope, version, deletions } = unit;
  return {
    scope_id: scopeId,
    tenant: scope.tenant,
    user_id: scope.userId,
    agent_id: agentColumn(scope),
    created_at: unit.at,
    base_n: version?.commits,
    base_sum: version?.sum,
    bucket,
    users: deletions?.users,
    memories: deletions?.memories,
  };
}

function recordRows({ scopeId, records }: AssumedUnit, bodies: Bodies): readonly object[] {
  return records.map(({ record, n, sum }) => {
    const { kind, turn, turns, conversation, requestId, leaf, at, changes, said } = record;
    return {
      scope_id: scopeId,
      n,
      kind: numberOf(kind),
      turn,
      turns,
      conversation,
      request_id: requestId,
      leaf,
      at,
      sum,
      changes: bodies.add(changes),
      said: bodies.add(said),
    };
  });
}

function memoryRows({ locked, scopeId }: AssumedUnit): readonly object[] {
  return knownMemories(locked.unit).map((hashes) => ({ scope_id: scopeId, hashes }));
}

function snapshotRows({ locked, scopeId, records }: AssumedUnit, bodies: Bodies): readonly object[] {
  const { n } = lastOf(records);
  return locked.unit.changes.flatMap((change) => {
    if (change.kind !== "snapshot") return [];
    const { data } = change;
    return [{ scope_id: scopeId, n, sum: sumOfSnapshot(scopeId, { n, data }), data: bodies.add(data) }];
  });
}

function sharedRows({ locked, scopeId }: AssumedUnit, bodies: Bodies): readonly object[] {
  return locked.unit.changes.flatMap((change) =>
    change.kind === "keep-shared"
      ? change.rows.map(({ digest, messages }) => ({ scope_id: scopeId, digest, messages: bodies.add(messages) }))
      : [],
  );
}

function written({ scopeId, records }: AssumedUnit): WrittenUnit {
  const { n, sum } = lastOf(records);
  return { version: { scopeId, commits: n, sum } };
}

function lastOf(records: readonly NumberedRecord[]): NumberedRecord {
  const last = records.at(-1);
  if (last === undefined) throw new Error("a unit that is committed at once has records");
  return last;
}
