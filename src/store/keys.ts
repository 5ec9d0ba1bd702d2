import { setTimeout } from "node:timers/promises";
import { type Database, sql } from "./database.js";

/** A stored API key, without the key itself. Times in milliseconds since the epoch. */
export interface StoredApiKey {
  readonly id: string;
  readonly tenant: string;
  /** SHA-256 of the secret, base64url. */
  readonly secretDigest: string;
  /** A name for people; null: none. */
  readonly label: string | null;
  readonly createdAt: number;
  /** Null while it is valid. */
  readonly revokedAt: number | null;
}

/** A key with the secret that its tenant's cache salts are derived from. */
export type FoundApiKey = Pick<StoredApiKey, "tenant" | "secretDigest" | "revokedAt"> & {
  readonly cacheSecret: string;
};

/** Milliseconds for which an instance's requests share what it read of keys, where others may change them on a server. */
const SHARED_MS = 50;
/** Answers that are kept for requests that share them. */
const MOST_SHARED = 1_000;

const COLUMNS = `id, tenant, secret_digest as "secretDigest", label, created_at as "createdAt", revoked_at as "revokedAt"`;
const ADD = `insert into keys (id, tenant, secret_digest, label, created_at, cache_secret)
  values ($1, $2, $3, $4, $5, coalesce((select min(k.cache_secret) from keys k where k.tenant = $2), $6))`;

/**
 * The API keys of a database. Requests share a read of them for a short time; adding or revoking a key takes longer than that, so that
 * every instance knows when the call returns.
 */
export class StoredApiKeys {
  readonly #shared = new Map<string, { readonly askedAt: number; readonly rows: Promise<object[]> }>();

  /** @param sharedMs 0: every request reads */
  constructor(
    private readonly database: Pick<Database, "read" | "write">,
    private readonly sharedMs = SHARED_MS,
  ) {}

  /** A key by its id, revoked or not; null where there is none. */
  async find(id: string): Promise<FoundApiKey | null> {
    const text = `select ${COLUMNS}, cache_secret as "cacheSecret" from keys where id = $1 and secret_digest is not null`;
    const [key] = await this.#ask<FoundApiKey>(text, [id]);
    return key ?? null;
  }

  /** Whether there ever was a key. */
  async any(): Promise<boolean> {
    return (await this.#ask("select id from keys where secret_digest is not null limit 1", [])).length > 0;
  }

  /** Oldest first. */
  list(): Promise<StoredApiKey[]> {
    const text = `select ${COLUMNS} from keys where secret_digest is not null order by created_at, id`;
    return this.database.read(text, []);
  }

  /** Stores a key. `newCacheSecret` becomes the tenant's where this is its first key. Rejects where the id is taken. */
  async add(key: Omit<StoredApiKey, "revokedAt">, newCacheSecret: string): Promise<void> {
    const { id, tenant, secretDigest, label, createdAt } = key;
    await this.database.write([sql(ADD, id, tenant, secretDigest, label, createdAt, newCacheSecret)]);
    await this.#knownEverywhere();
  }

  /** What a tenant's cache salts are made of. `newCacheSecret`: the tenant's from now on, where it has none yet. */
  async cacheSecretOf(tenant: string, newCacheSecret: string, createdAt: number): Promise<string> {
    const values = [`tenant ${tenant}`, tenant, null, null, createdAt, newCacheSecret] as const;
    await this.database.write([sql(`${ADD} on conflict (id) do nothing`, ...values)]);
    const text = `select min(cache_secret) as "cacheSecret" from keys where tenant = $1`;
    const [kept] = await this.database.read<{ cacheSecret: string }>(text, [tenant]);
    return kept?.cacheSecret ?? newCacheSecret;
  }

  /** Revokes a key. False where there is none with this id, or it was revoked before. */
  async revoke(id: string, at: number): Promise<boolean> {
    const isValid = "select id from keys where id = $1 and secret_digest is not null and revoked_at is null";
    const found = await this.database.read(isValid, [id]);
    if (found.length === 0) return false;
    const text = "update keys set revoked_at = $2 where id = $1 and revoked_at is null";
    await this.database.write([{ text, values: [id, at] }]);
    await this.#knownEverywhere();
    return true;
  }

  /** Resolves when no instance uses what it read before any more: each counts by its own clock. */
  async #knownEverywhere(): Promise<void> {
    if (this.sharedMs > 0) await setTimeout(2 * this.sharedMs);
  }

  /** Reads what requests ask for. */
  #ask<R extends object>(text: string, values: readonly string[]): Promise<R[]> {
    const { sharedMs } = this;
    if (sharedMs === 0) return this.database.read(text, values);
    const askedAt = performance.now();
    const name = values.join();
    const known = this.#shared.get(name);
    if (known !== undefined && askedAt - known.askedAt < sharedMs) return known.rows as Promise<R[]>;
    if (this.#shared.size >= MOST_SHARED) this.#shared.clear();
    const rows = this.database.read<R>(text, values);
    this.#shared.set(name, { askedAt, rows });
    // A server that is back is asked again at once.
    rows.catch(() => this.#shared.delete(name));
    return rows;
  }
}
