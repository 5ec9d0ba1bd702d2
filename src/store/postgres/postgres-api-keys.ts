import { setTimeout } from "node:timers/promises";
import { named } from "../database/sql.js";
import type { FoundApiKey, StoredApiKey } from "../sqlite/api-keys.js";
import { ask, type Connections } from "./connections.js";

const STATEMENTS = named("keys", {
  found: `select k.tenant, k.secret_digest as "secretDigest", k.revoked_at as "revokedAt", t.cache_secret as "cacheSecret"
    from api_keys k join tenants t on t.tenant = k.tenant where k.id = $1`,
  any: `select exists (select from api_keys) as "any"`,
  list: `select id, tenant, secret_digest as "secretDigest", label, created_at as "createdAt", revoked_at as "revokedAt"
    from api_keys order by created_at, id collate "C"`,
  keepTenant: "insert into tenants (tenant, cache_secret, created_at) values ($1, $2, $3) on conflict do nothing",
  add: "insert into api_keys (id, tenant, secret_digest, label, created_at) values ($1, $2, $3, $4, $5)",
  cacheSecret: `select cache_secret as "cacheSecret" from tenants where tenant = $1`,
  revoke: "update api_keys set revoked_at = $2 where id = $1 and revoked_at is null returning id",
});

/** Milliseconds for which requests share an answer, from when it was asked for. */
const SHARED_MS = 50;
/** Answers that are kept for them. */
const MOST_SHARED = 1_000;

/**
 * The API keys of a PostgreSQL database. What requests ask for is read every 50 ms at most. Whoever adds or revokes a key waits for longer than
 * that: when the call returns, every instance knows.
 */
export class PostgresApiKeys {
  readonly #found: SharedAnswers<FoundApiKey & object>;
  readonly #any: SharedAnswers<{ readonly any: boolean }>;

  constructor(private readonly connections: Connections) {
    this.#found = new SharedAnswers((id) => connections.read(STATEMENTS.found, [id]));
    this.#any = new SharedAnswers(() => connections.read(STATEMENTS.any));
  }

  /** A key by its id, revoked or not; null where there is none. */
  async find(id: string): Promise<FoundApiKey | null> {
    const [row] = await this.#found.ask(id);
    return row ?? null;
  }

  /** Whether there ever was a key. */
  async any(): Promise<boolean> {
    const [row] = await this.#any.ask("");
    return row?.any === true;
  }

  /** Oldest first. */
  list(): Promise<StoredApiKey[]> {
    return this.connections.read<StoredApiKey & object>(STATEMENTS.list);
  }

  /** Stores a key. `newCacheSecret` becomes the tenant's where this is its first key. Rejects where the id is taken. */
  async add(key: Omit<StoredApiKey, "revokedAt">, newCacheSecret: string): Promise<void> {
    const { id, tenant, secretDigest, label, createdAt } = key;
    await this.connections.change((client) =>
      Promise.all([
        client.query("begin"),
        ask(client, STATEMENTS.keepTenant, [tenant, newCacheSecret, createdAt]),
        ask(client, STATEMENTS.add, [id, tenant, secretDigest, label, createdAt]),
        client.query("commit"),
      ]),
    );
    await knownEverywhere();
  }

  /** What a tenant's cache salts are made of. `newCacheSecret`: the tenant's from now on, where it has none yet. */
  async cacheSecretOf(tenant: string, newCacheSecret: string, createdAt: number): Promise<string> {
    await this.connections.read(STATEMENTS.keepTenant, [tenant, newCacheSecret, createdAt]);
    const [kept] = await this.connections.read<{ cacheSecret: string }>(STATEMENTS.cacheSecret, [tenant]);
    return kept?.cacheSecret ?? newCacheSecret;
  }

  /** Revokes a key. False where there is none with this id, or it was revoked before. */
  async revoke(id: string, at: number): Promise<boolean> {
    const rows = await this.connections.change((client) => ask(client, STATEMENTS.revoke, [id, at]));
    await knownEverywhere();
    return rows.length > 0;
  }
}

/** Resolves when no instance uses an answer of before any more: each counts by its own clock. */
function knownEverywhere(): Promise<void> {
  return setTimeout(2 * SHARED_MS);
}

/** Answers by what was asked, each for {@link SHARED_MS}. */
class SharedAnswers<R> {
  readonly #answers = new Map<string, { readonly askedAt: number; readonly answer: Promise<R[]> }>();

  constructor(private readonly read: (name: string) => Promise<R[]>) {}

  ask(name: string): Promise<R[]> {
    const askedAt = performance.now();
    const known = this.#answers.get(name);
    if (known !== undefined && askedAt - known.askedAt < SHARED_MS) return known.answer;
    if (this.#answers.size >= MOST_SHARED) this.#answers.clear();
    const answer = this.read(name);
    this.#answers.set(name, { askedAt, answer });
    // A server that is back is asked again at once.
    answer.catch(() => this.#answers.delete(name));
    return answer;
  }
}
