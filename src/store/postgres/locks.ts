import type pg from "pg";
import { digestOf, LruMap, type Scope } from "../../core/index.js";
import type { DigestSeal } from "../database/digest-seal.js";
import type { JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { ask } from "./connections.js";

/** A unit with what it is locked by; see `LockKeys`. */
export interface LockedUnit {
  readonly unit: JournalUnit;
  readonly bucket: number;
  readonly lock: string;
  /** Whether it may be stored already: the connection was lost when its outcome was under way. */
  isUncertain: boolean;
}

/** The outcome of a unit; `stale`: it does not build on what is stored, and changed nothing. */
export type UnitOutcome = WrittenUnit | "stale";

/** Users whose bucket is in memory, and scopes whose lock is. */
const MOST_KEYS = 10_000;

/**
 * What users and scopes are locked and counted by: parts of keyed hashes of their names, so that they name nobody, and no tenant can choose
 * a user that collides with another's. Two scopes with one lock would only wait for each other.
 */
export class LockKeys {
  readonly #buckets = new LruMap<string, number>(MOST_KEYS);
  readonly #locks = new LruMap<string, string>(MOST_KEYS);

  constructor(private readonly seal: DigestSeal) {}

  /** 16 bits: see `DeletionCounts`. The same as a SQLite file with this key has. */
  bucketOf({ tenant, userId }: Pick<Scope, "tenant" | "userId">): number {
    return remembered(this.#buckets, JSON.stringify([tenant, userId]), (name) => this.#hashOf(name).readUInt16BE(0));
  }

  /** 64 bits, in decimal digits. */
  lockOf({ tenant, userId, agentId }: Scope): string {
    return remembered(this.#locks, JSON.stringify([tenant, userId, agentId]), (name) =>
      this.#hashOf(name).readBigInt64BE(0).toString(),
    );
  }

  #hashOf(name: string): Buffer {
    return Buffer.from(this.seal.seal(digestOf(name)), "base64url");
  }
}

function remembered<T>(keys: LruMap<string, T>, name: string, make: (name: string) => T): T {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const made = make(name);
  keys.set(name, made);
  return made;
}

/** Names the locks of buckets among other advisory locks of the database. */
const BUCKET_LOCKS = 0x6d656d73;

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
  const sorted = [...new Set(buckets.map(({ bucket }) => bucket))].sort((a, b) => a - b);
  const deleting = new Set(buckets.filter(({ isDeleting }) => isDeleting).map(({ bucket }) => bucket));
  return ask(client, LOCK_BUCKETS, [sorted, sorted.map((bucket) => deleting.has(bucket))]);
}

/** Locks scopes by the keys of `LockKeys`. */
export function lockScopes(client: pg.ClientBase, locks: readonly string[]): Promise<unknown> {
  const sorted = locks.map(BigInt).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return ask(client, LOCK_SCOPES, [sorted.map(String)]);
}
