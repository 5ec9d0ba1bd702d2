import type Database from "better-sqlite3";
import type { MemoryId, Scope, UserId } from "../../core/index.js";
import { digestOf } from "../../core/text/ids.js";
import type { DeletionCounts, PendingSourceDeletions } from "../api/store.js";
import type { DatabaseConnection } from "../database/open-database.js";

type TenantUser = Pick<Scope, "tenant" | "userId">;
type SourceKey = [tenant: string, userId: string];

/** Users whose bucket is in memory. */
const MOST_BUCKETS = 1_000;

const NONE: DeletionCounts = { users: 0, memories: 0 };
/** In place of a memory's id: everything of the user. */
const EVERYTHING = "";

/** Stored deletions: their counts, and those that the memory source has yet to confirm. */
export class Deletions {
  readonly #counts: Database.Statement<[number], DeletionCounts>;
  readonly #add: Database.Statement<[{ bucket: number; users: number; memories: number }]>;
  readonly #pending: Database.Statement<SourceKey, string>;
  readonly #owe: Database.Statement<[...SourceKey, string]>;
  readonly #done: Database.Statement<[...SourceKey, string]>;
  readonly #owing: Database.Statement<[], { tenant: string; userId: UserId }>;

  /** Buckets of the last users that were looked up: a compose reads several times, and other users' in between. */
  readonly #buckets = new Map<string, number>();

  constructor(private readonly database: DatabaseConnection) {
    const { sqlite } = database;
    this.#counts = sqlite.prepare("select users, memories from deletions where bucket = ?");
    this.#add = sqlite.prepare(
      `insert into deletions (bucket, users, memories) values (@bucket, @users, @memories)
       on conflict do update set users = users + excluded.users, memories = memories + excluded.memories`,
    );
    const ofUser = "tenant = ? and user_id = ?";
    this.#pending = sqlite
      .prepare<SourceKey, string>(`select memory_id from source_deletions where ${ofUser} order by memory_id`)
      .pluck();
    this.#owe = sqlite.prepare(
      "insert into source_deletions (tenant, user_id, memory_id) values (?, ?, ?) on conflict do nothing",
    );
    this.#done = sqlite.prepare(`delete from source_deletions where ${ofUser} and memory_id = ?`);
    this.#owing = sqlite.prepare('select distinct tenant, user_id as "userId" from source_deletions');
  }

  /** See `Store.deletionsOf`. */
  countsOf(user: TenantUser): DeletionCounts {
    return this.#counts.get(this.#bucketOf(user)) ?? NONE;
  }

  /** Whether nothing was deleted since these counts. */
  areStill(user: TenantUser, { users, memories }: DeletionCounts): boolean {
    const now = this.countsOf(user);
    return now.users === users && now.memories === memories;
  }

  /** Counts the deletion of a user (`memoryId` null) or of one memory, inside its transaction. */
  count(user: TenantUser, memoryId: MemoryId | null, isInSource: boolean): void {
    const [users, memories] = memoryId === null ? [1, 0] : [0, 1];
    this.#add.run({ bucket: this.#bucketOf(user), users, memories });
    if (isInSource) this.#owe.run(user.tenant, user.userId, memoryId ?? EVERYTHING);
  }

  /** See `Store.pendingInSource`. */
  pendingOf({ tenant, userId }: TenantUser): PendingSourceDeletions | null {
    const names = this.#pending.all(tenant, userId);
    if (names.length === 0) return null;
    const memoryIds = names.filter((name) => name !== EVERYTHING) as MemoryId[];
    return { everything: memoryIds.length < names.length, memoryIds };
  }

  /** See `Store.deletedFromSource`. */
  done({ tenant, userId }: TenantUser, memoryId: MemoryId | null): void {
    this.#done.run(tenant, userId, memoryId ?? EVERYTHING);
  }

  /** See `Store.usersPendingInSource`. */
  usersPending(): TenantUser[] {
    return this.#owing.all();
  }

  /**
   * 16 bits of a keyed hash: collisions are too rare to cost anything, and frequent enough that a bucket identifies nobody. The key is the
   * database's own, so that no tenant can choose a user that collides with another's.
   */
  #bucketOf({ tenant, userId }: TenantUser): number {
    const name = JSON.stringify([tenant, userId]);
    const known = this.#buckets.get(name);
    if (known !== undefined) return known;
    const sealed = this.database.digests.seal(digestOf(name));
    const bucket = Buffer.from(sealed, "base64url").readUInt16BE(0);
    if (this.#buckets.size >= MOST_BUCKETS) this.#buckets.clear();
    this.#buckets.set(name, bucket);
    return bucket;
  }
}
