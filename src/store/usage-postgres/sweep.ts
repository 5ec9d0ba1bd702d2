import type pg from "pg";
import { CHANGES_KEPT_MS } from "../api/usage-log.js";
import { ask } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { HOUR_MS, MINUTE_MS, STEPS_MS } from "../usage/usage-totals.js";

export { MINUTE_MS };
export const DAY_MS = 24 * HOUR_MS;
/** Milliseconds for which a deleted user is remembered: longer than any instance keeps prompts that it cannot record. */
const DELETED_MS = DAY_MS;
/** The same for batches that were recorded. */
const BATCH_MS = HOUR_MS;

/**
 * Sends the removal of sums, notes and marks that are too old, without waiting for it.
 *
 * @param before what is older than this is past the bound in days
 */
export function sendSweep(client: pg.ClientBase, now: number, before: number): Promise<unknown>[] {
  const oldest: readonly (readonly [step: number, start: number])[] = [
    [STEPS_MS.hour, now - 2 * HOUR_MS],
    [STEPS_MS.day, now - DAY_MS - HOUR_MS],
    [STEPS_MS.month, before - DAY_MS],
  ];
  const steps = ["usage_sums", "usage_times", "usage_causes"].flatMap((table) =>
    oldest.map((values) =>
      ask(
        client,
        { name: `sweep_${table}`, text: `delete from ${SCHEMA}.${table} where step = $1 and start < $2` },
        values,
      ),
    ),
  );
  const times = [
    ["usage_notes", before],
    ["usage_batches", now - BATCH_MS],
    ["usage_changes", now - CHANGES_KEPT_MS],
    ["usage_deleted_users", now - DELETED_MS],
  ] as const;
  const others = times.map(([table, at]) =>
    ask(client, { name: `sweep_${table}`, text: `delete from ${SCHEMA}.${table} where at < $1` }, [at]),
  );
  return [...steps, ...others];
}
