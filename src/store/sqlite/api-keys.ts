import type { DatabaseConnection } from "../database/open-database.js";
import { PreparedTexts } from "../database/sql.js";

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

const KEEP_TENANT = "insert into tenants (tenant, cache_secret, created_at) values ($1, $2, $3) on conflict do nothing";

/** The API keys of a database. Every call reads the file, so another process's changes apply at once. Calls throw the store's faults. */
export class StoredApiKeys {
  readonly #sql: PreparedTexts;

  constructor(private readonly database: Pick<DatabaseConnection, "sqlite">) {
    this.#sql = new PreparedTexts(database.sqlite);
  }

  /** A key by its id, revoked or not; null where there is none. */
  find(id: string): FoundApiKey | null {
    const text = `select api_keys.tenant, secret_digest as "secretDigest", revoked_at as "revokedAt", cache_secret as "cacheSecret"
      from api_keys join tenants on api_keys.tenant = tenants.tenant where id = $1`;
    return this.#sql.run<FoundApiKey>(text, [id])[0] ?? null;
  }

  /** Whether there ever was a key. */
  any(): boolean {
    return this.#sql.run("select 1 from api_keys limit 1").length > 0;
  }

  /** Oldest first. */
  list(): StoredApiKey[] {
    return this.#sql.run(`select id, tenant, secret_digest as "secretDigest", label, created_at as "createdAt",
      revoked_at as "revokedAt" from api_keys order by created_at, id`);
  }

  /** Stores a key. `newCacheSecret` becomes the tenant's where this is its first key. Throws where the id is taken. */
  add({ id, tenant, secretDigest, label, createdAt }: Omit<StoredApiKey, "revokedAt">, newCacheSecret: string): void {
    const text = "insert into api_keys (id, tenant, secret_digest, label, created_at) values ($1, $2, $3, $4, $5)";
    this.#sql.run("begin immediate");
    try {
      this.#sql.run(KEEP_TENANT, [tenant, newCacheSecret, createdAt]);
      this.#sql.run(text, [id, tenant, secretDigest, label, createdAt]);
      this.#sql.run("commit");
    } catch (error) {
      if (this.database.sqlite.inTransaction) this.#sql.run("rollback");
      throw error;
    }
  }

  /** What a tenant's cache salts are made of. `newCacheSecret`: the tenant's from now on, where it has none yet. */
  cacheSecretOf(tenant: string, newCacheSecret: string, createdAt: number): string {
    this.#sql.run(KEEP_TENANT, [tenant, newCacheSecret, createdAt]);
    const text = `select cache_secret as "cacheSecret" from tenants where tenant = $1`;
    return this.#sql.run<{ cacheSecret: string }>(text, [tenant])[0]?.cacheSecret ?? newCacheSecret;
  }

  /** Revokes a key. False where there is none with this id, or it was revoked before. */
  revoke(id: string, at: number): boolean {
    const text = "update api_keys set revoked_at = $2 where id = $1 and revoked_at is null returning id";
    return this.#sql.run(text, [id, at]).length > 0;
  }
}
