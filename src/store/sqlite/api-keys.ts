import type Database from "better-sqlite3";
import { asc, eq, sql } from "drizzle-orm";
import type { OpenDatabase } from "../database/open-database.js";
import { apiKeys as keys, tenants } from "../database/schema.js";

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

/** The API keys of a database. Every call reads the file, so another process's changes apply at once. */
export class StoredApiKeys {
  /** Both run with every request. */
  readonly #find: Database.Statement<[string], FoundApiKey>;
  readonly #any: Database.Statement<[], 0 | 1>;

  constructor(private readonly database: OpenDatabase) {
    const { sqlite } = database;
    this.#find = sqlite.prepare(
      `select api_keys.tenant, secret_digest as secretDigest, revoked_at as revokedAt, cache_secret as cacheSecret
       from api_keys join tenants on api_keys.tenant = tenants.tenant where id = ?`,
    );
    this.#any = sqlite.prepare<[], 0 | 1>("select exists (select 1 from api_keys)").pluck();
  }

  /** A key by its id, revoked or not; null where there is none. */
  find(id: string): FoundApiKey | null {
    return this.#find.get(id) ?? null;
  }

  /** Whether there ever was a key. */
  any(): boolean {
    return this.#any.get() === 1;
  }

  /** Oldest first. */
  list(): StoredApiKey[] {
    return this.database.orm.select().from(keys).orderBy(asc(keys.createdAt), asc(keys.id)).all();
  }

  /** Stores a key. `newCacheSecret` becomes the tenant's where this is its first key. Throws where the id is taken. */
  add(key: Omit<StoredApiKey, "revokedAt">, newCacheSecret: string): void {
    const { tenant, createdAt } = key;
    this.database.orm.transaction(
      (transaction) => {
        transaction
          .insert(tenants)
          .values({ tenant, cacheSecret: newCacheSecret, createdAt })
          .onConflictDoNothing()
          .run();
        transaction.insert(keys).values(key).run();
      },
      { behavior: "immediate" },
    );
  }

  /** What a tenant's cache salts are made of. `newCacheSecret`: the tenant's from now on, where it has none yet. */
  cacheSecretOf(tenant: string, newCacheSecret: string, createdAt: number): string {
    const { orm } = this.database;
    orm.insert(tenants).values({ tenant, cacheSecret: newCacheSecret, createdAt }).onConflictDoNothing().run();
    const kept = orm.select().from(tenants).where(eq(tenants.tenant, tenant)).get();
    return kept?.cacheSecret ?? newCacheSecret;
  }

  /** Revokes a key. False where there is none with this id, or it was revoked before. */
  revoke(id: string, at: number): boolean {
    const { changes } = this.database.orm
      .update(keys)
      .set({ revokedAt: at })
      .where(sql`${keys.id} = ${id} and ${keys.revokedAt} is null`)
      .run();
    return changes > 0;
  }
}
