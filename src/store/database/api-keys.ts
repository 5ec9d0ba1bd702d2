import { setTimeout } from "node:timers/promises";
import type { DatabaseConnection } from "./open-database.js";
import { type NamedStatement, named, PreparedTexts } from "./sql.js";

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

const STATEMENTS = named("keys", {
  found: `select k.tenant, k.secret_digest as "secretDigest", k.revoked_at as "revokedAt", t.cache_secret as "cacheSecret"
    from api_keys k join tenants t on t.tenant = k.tenant where k.id = $1`,
  any: "select id from api_keys limit 1",
  list: `select id, tenant, secret_digest as "secretDigest", label, created_at as "createdAt", revoked_at as "revokedAt"
    from api_keys order by created_at, id`,
  keepTenant: "insert into tenants (tenant, cache_secret, created_at) values ($1, $2, $3) on conflict do nothing",
  add: "insert into api_keys (id, tenant, secret_digest, label, created_at) values ($1, $2, $3, $4, $5)",
  cacheSecret: `select cache_secret as "cacheSecret" from tenants where tenant = $1`,
  revoke: "update api_keys set revoked_at = $2 where id = $1 and revoked_at is null returning id",
});

/** Where keys are stored. Rejects with the store's faults. */
export interface KeyDatabase {
  /** Milliseconds for which requests share what was read, from when it was asked for; 0: they do not. */
  readonly sharedMs: number;
  /** Runs a statement that may be run twice. */
  read<R extends object>(statement: NamedStatement, values?: readonly unknown[]): Promise<R[]>;
  /** Runs statements in one transaction; gives the rows of the last. */
  change(...statements: readonly (readonly [NamedStatement, readonly unknown[]])[]): Promise<readonly object[]>;
}

/** Answers that are kept for requests that share them. */
const MOST_SHARED = 1_000;

/**
 * The API keys of a database. Where requests share what was read, whoever adds or revokes a key waits for longer than that: when the call
 * returns, every instance knows.
 */
export class StoredApiKeys {
  readonly #shared = new Map<string, { readonly askedAt: number; readonly rows: Promise<object[]> }>();

  constructor(private readonly database: KeyDatabase) {}

  /** A key by its id, revoked or not; null where there is none. */
  async find(id: string): Promise<FoundApiKey | null> {
    const [key] = await this.#ask<FoundApiKey>(STATEMENTS.found, [id]);
    return key ?? null;
  }

  /** Whether there ever was a key. */
  async any(): Promise<boolean> {
    return (await this.#ask(STATEMENTS.any, [])).length > 0;
  }

  /** Oldest first. */
  list(): Promise<StoredApiKey[]> {
    return this.database.read(STATEMENTS.list);
  }

  /** Stores a key. `newCacheSecret` becomes the tenant's where this is its first key. Rejects where the id is taken. */
  async add(key: Omit<StoredApiKey, "revokedAt">, newCacheSecret: string): Promise<void> {
    const { id, tenant, secretDigest, label, createdAt } = key;
    await this.database.change(
      [STATEMENTS.keepTenant, [tenant, newCacheSecret, createdAt]],
      [STATEMENTS.add, [id, tenant, secretDigest, label, createdAt]],
    );
    await this.#knownEverywhere();
  }

  /** What a tenant's cache salts are made of. `newCacheSecret`: the tenant's from now on, where it has none yet. */
  async cacheSecretOf(tenant: string, newCacheSecret: string, createdAt: number): Promise<string> {
    await this.database.read(STATEMENTS.keepTenant, [tenant, newCacheSecret, createdAt]);
    const [kept] = await this.database.read<{ cacheSecret: string }>(STATEMENTS.cacheSecret, [tenant]);
    return kept?.cacheSecret ?? newCacheSecret;
  }

  /** Revokes a key. False where there is none with this id, or it was revoked before. */
  async revoke(id: string, at: number): Promise<boolean> {
    const revoked = await this.database.change([STATEMENTS.revoke, [id, at]]);
    await this.#knownEverywhere();
    return revoked.length > 0;
  }

  /** Resolves when no instance uses what it read before any more: each counts by its own clock. */
  async #knownEverywhere(): Promise<void> {
    const { sharedMs } = this.database;
    if (sharedMs > 0) await setTimeout(2 * sharedMs);
  }

  /** Reads what requests ask for. */
  #ask<R extends object>(statement: NamedStatement, values: readonly string[]): Promise<R[]> {
    const { sharedMs } = this.database;
    if (sharedMs === 0) return this.database.read(statement, values);
    const askedAt = performance.now();
    const name = values.join();
    const known = this.#shared.get(name);
    if (known !== undefined && askedAt - known.askedAt < sharedMs) return known.rows as Promise<R[]>;
    if (this.#shared.size >= MOST_SHARED) this.#shared.clear();
    const rows = this.database.read<R>(statement, values);
    this.#shared.set(name, { askedAt, rows });
    // A server that is back is asked again at once.
    rows.catch(() => this.#shared.delete(name));
    return rows;
  }
}

/** The API keys of a database file. Every call reads the file, so another process's changes apply at once. */
export function keysInFile({ sqlite }: Pick<DatabaseConnection, "sqlite">): StoredApiKeys {
  const sql = new PreparedTexts(sqlite);
  return new StoredApiKeys({
    sharedMs: 0,
    read: async ({ text }, values) => sql.run(text, values),
    async change(...statements) {
      sql.run("begin immediate");
      try {
        const rows = statements.map(([{ text }, values]) => sql.run<object>(text, values));
        sql.run("commit");
        return rows.at(-1) ?? [];
      } catch (error) {
        if (sqlite.inTransaction) sql.run("rollback");
        throw error;
      }
    },
  });
}
