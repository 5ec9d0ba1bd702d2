/*
 * The commit of `bare-postgres.ts`, in place of `group-commit.ts`: one insert of a group's records, and nothing else. No locks, no checks,
 * no snapshots, no other rows. It keeps no promise.
 */

import type { commitGroup as commit } from "../src/store/postgres/group-commit.js";

const { applyUnits, numberedRecords, sumBehind } = (await import(
  new URL("../dist/store/postgres/unit-changes.js", import.meta.url).href
)) as typeof import("../src/store/postgres/unit-changes.js");

export const commitGroup: typeof commit = async (client, units, _isTogether, onSending) => {
  const group = units.map(({ unit: { deletion: _, ...unit }, bucket }) => {
    // Of a new scope any number that nobody has.
    const scopeId = unit.version?.scopeId ?? -Math.ceil(Math.random() * 2 ** 40);
    const commits = unit.version?.commits ?? 0;
    const appending = { ...unit, changes: unit.changes.filter(({ kind }) => kind === "append") };
    const sum = unit.version?.sum ?? 0;
    return { unit: appending, scopeId, commits, sum, bucket, records: numberedRecords(unit, scopeId, commits) };
  });
  onSending();
  await Promise.all(applyUnits(client, group, new Map()));
  return group.map((one) => {
    const { scopeId, commits, records } = one;
    return { version: { scopeId, commits: commits + records.length, sum: sumBehind(one, new Map()) } };
  });
};
