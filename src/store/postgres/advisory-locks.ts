import type pg from "pg";
import { ask } from "./connections.js";

/** Names the locks of buckets among other advisory locks of the database. */
export const BUCKET_LOCKS = 0x6d656d73;

/**
 * Locks of buckets are shared, but for units that count a deletion. All transactions take them in one order, buckets first: no two wait for
 * each other. An advisory lock writes nothing, unlike a row's.
 */
const LOCK_BUCKETS = {
  name: "lock_buckets",
  text: `select case when is_deleting then pg_advisory_xact_lock(${BUCKET_LOCKS}, bucket)::text
      else pg_advisory_xact_lock_shared(${BUCKET_LOCKS}, bucket)::text end
    from unnest($1::integer[], $2::boolean[]) as locked (bucket, is_deleting)`,
};
const LOCK_SCOPES = {
  name: "lock_scopes",
  text: "select pg_advisory_xact_lock(k) from unnest($1::bigint[]) as locked (k)",
};

/** Locks buckets in the transaction that is under way. */
export function lockBuckets(
  client: pg.ClientBase,
  buckets: readonly { readonly bucket: number; readonly isDeleting: boolean }[],
): Promise<unknown> {
  const sorted = sortedBuckets(buckets);
  const deleting = new Set(buckets.filter(({ isDeleting }) => isDeleting).map(({ bucket }) => bucket));
  return ask(client, LOCK_BUCKETS, [sorted, sorted.map((bucket) => deleting.has(bucket))]);
}

/** Locks scopes by the keys of `LockKeys`. */
export function lockScopes(client: pg.ClientBase, locks: readonly string[]): Promise<unknown> {
  return ask(client, LOCK_SCOPES, [sortedScopes(locks)]);
}

/** What units that delete nothing lock, in the order in which all transactions do. */
export function sortedLocks(units: readonly { readonly bucket: number; readonly lock: string }[]): {
  readonly buckets: readonly number[];
  readonly locks: readonly string[];
} {
  return { buckets: sortedBuckets(units), locks: sortedScopes(units.map(({ lock }) => lock)) };
}

function sortedBuckets(of: readonly { readonly bucket: number }[]): number[] {
  return [...new Set(of.map(({ bucket }) => bucket))].sort((a, b) => a - b);
}

function sortedScopes(locks: readonly string[]): string[] {
  const sorted = locks.map(BigInt).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.map(String);
}
