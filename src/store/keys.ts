import { setTimeout } from "node:timers/promises";
import { type Database, sql } from "./database.js";

/** A stored API key, without the key itself. Times are in milliseconds since the epoch. */
export interface StoredApiKey {
  readonly id: string;
  readonly tenant: string;
  /** SHA-256 of the secret, base64url. */
  readonly secretDigest: string;
  readonly label: string | null;
  readonly createdAt: number;
  readonly revokedAt: number | null;
}

/** A key with the secret that its tenant's cache salts are derived from. */
export type FoundApiKey = Pick<StoredApiKey, "tenant" | "secretDigest" | "revokedAt"> & {
  readonly cacheSecret: string;
};

/** Milliseconds for which requests share a read, which would otherwise be one more of each. */
export const SHARED_MS = 50;
const MOST_SHARED = 1_000;

const COLUMNS = `id, tenant, secret_digest as "secretDigest", label, created_at as "createdAt", revoked_at as "revokedAt"`;
/** All keys of a tenant have its first one's secret. */
const ADD = `insert into keys (id, tenant, secret_digest, label, created_at, cache_secret)
  values ($1, $2, $3, $4, $5, coalesce((select min(k.cache_secret) from keys k where k.tenant = $2), $6))`;

/** The API keys of a database. Requests share a read for a short time, and adding or revoking a key waits longer, so every instance knows it. */
export class StoredApiKeys {
  readonly #shared = new Map<string, { readonly askedAt: number; readonly rows: Promise<object[]> }>();

  constructor(private readonly database: Pick<Database, "read" | "take" | "write">) {}

  async find(id: string): Promise<FoundApiKey | null> {
    const text = `select ${COLUMNS}, cache_secret as "cacheSecret" from keys where id = $1`;
    const [key] = await this.#ask<FoundApiKey>(text, [id]);
    return key ?? null;
  }

  async any(): Promise<boolean> {
    return (await this.#ask("select id from keys limit 1", [])).length > 0;
  }

  /** Oldest first. */
  list(): Promise<StoredApiKey[]> {
    const text = `select ${COLUMNS} from keys order by created_at, id`;
    return this.database.read(text, []);
  }

  /** Stores a key. `newCacheSecret` is used if it is the tenant's first key. Rejects if the id is taken. */
  async add(key: Omit<StoredApiKey, "revokedAt">, newCacheSecret: string): Promise<void> {
    const { id, tenant, secretDigest, label, createdAt } = key;
    await this.database.write([sql(ADD, id, tenant, secretDigest, label, createdAt, newCacheSecret)]);
    await this.#knownEverywhere();
  }

  /** Revokes a key. False if there is none, or it was revoked before. */
  async revoke(id: string, at: number): Promise<boolean> {
    const text = "update keys set revoked_at = $2 where id = $1 and revoked_at is null returning id";
    const revoked = await this.database.take(text, [id, at]);
    if (revoked.length === 0) return false;
    await this.#knownEverywhere();
    return true;
  }

  /** Resolves when no instance uses an earlier read: each counts by its own clock. */
  #knownEverywhere(): Promise<void> {
    return setTimeout(2 * SHARED_MS);
  }

  #ask<R extends object>(text: string, values: readonly string[]): Promise<R[]> {
    const askedAt = performance.now();
    const name = values.join();
    const known = this.#shared.get(name);
    if (known !== undefined && askedAt - known.askedAt < SHARED_MS) return known.rows as Promise<R[]>;
    if (this.#shared.size >= MOST_SHARED) this.#shared.clear();
    const rows = this.database.read<R>(text, values);
    this.#shared.set(name, { askedAt, rows });
    // After a failure, the next call reads again.
    rows.catch(() => this.#shared.delete(name));
    return rows;
  }
}
