import { isNotNull } from "drizzle-orm";
import {
  bigint,
  customType,
  doublePrecision,
  index,
  integer,
  type PgColumn,
  pgSchema,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import type { SealedDigest } from "../../src/store/database/digest-seal.js";
import { typeOf } from "../../src/store/database/sql.js";
import { SCHEMA } from "../../src/store/postgres/connections.js";
import { type TableName, USAGE_TABLES, type UsageTable } from "../../src/store/usage/usage-tables.js";

/*
 * The journal's tables in PostgreSQL, in a schema of their own. There are no foreign keys: a check of one would lock, and so write, the
 * scope's row with every record. Whoever deletes a scope holds its lock, and deletes from `SCOPE_TABLES` of `unit-changes.ts`.
 */

const memprefix = pgSchema(SCHEMA);

const bytes = customType<{ data: Buffer }>({ dataType: () => "bytea" });
const big = (name: string) => bigint(name, { mode: "number" });
const digest = (name: string) => text(name).$type<SealedDigest>();

/** Scopes: a row for each agent of a user, and one without. Its version is the number of its newest record. */
export const scopes = memprefix.table(
  "scopes",
  {
    /** Never reused, so that a user who was deleted and came back is not taken for the deleted one. */
    scopeId: big("scope_id").primaryKey().generatedAlwaysAsIdentity(),
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: no agent. */
    agentId: text("agent_id").notNull(),
    createdAt: big("created_at").notNull(),
  },
  (table) => [uniqueIndex("scopes_by_name").on(table.tenant, table.userId, table.agentId)],
);

/** Records; see `RecordKey` and `RecordBodies`. Migration 0000 keeps rows of up to 8 KB uncompressed and in place. */
export const journal = memprefix.table(
  "journal",
  {
    seq: big("seq").primaryKey().generatedAlwaysAsIdentity(),
    scopeId: big("scope_id").notNull(),
    n: integer("n").notNull(),
    /** Index in `RECORD_KINDS`. */
    kind: smallint("kind").notNull(),
    turn: integer("turn").notNull(),
    turns: integer("turns").notNull(),
    conversation: big("conversation"),
    requestId: text("request_id"),
    leaf: big("leaf"),
    at: big("at").notNull(),
    /** CRC-32 of all other columns but `seq`. */
    sum: big("sum").notNull(),
    changes: text("changes"),
    said: text("said"),
  },
  (table) => [
    // What keeps two instances that planned on one state from both winning, should their locks ever fail.
    uniqueIndex("journal_by_scope").on(table.scopeId, table.n),
    index("journal_by_conversation")
      .on(table.scopeId, table.conversation, table.n)
      .where(isNotNull(table.conversation)),
    // By id first: engines report requests by id alone, and our own ids grow with time.
    index("journal_by_request").on(table.requestId, table.scopeId).where(isNotNull(table.requestId)),
  ],
);

/** A scope's state after its record `n`. */
export const snapshots = memprefix.table("snapshots", {
  scopeId: big("scope_id").primaryKey(),
  n: integer("n").notNull(),
  sum: big("sum").notNull(),
  data: text("data").notNull(),
});

/** What records refer to, each stored once in a scope: the instructions at the head of prompts, and messages that several turns were given. */
export const instructions = memprefix.table(
  "instructions",
  {
    scopeId: big("scope_id").notNull(),
    digest: digest("digest").notNull(),
    /** JSON of its messages. */
    messages: text("messages").notNull(),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.digest] })],
);

/** Keyed hashes of the ids of memories that scopes have, or had: a row for each record that brought new ones. */
export const knownMemories = memprefix.table(
  "known_memories",
  { scopeId: big("scope_id").notNull(), hashes: integer("hashes").array().notNull() },
  (table) => [index("known_memories_by_scope").on(table.scopeId)],
);

/** Which prompt led to a response of the engine's, or is the newest of an engine's conversation. */
export const responses = memprefix.table(
  "responses",
  {
    scopeId: big("scope_id").notNull(),
    /** As the engine names it. */
    id: text("id").notNull(),
    tenant: text("tenant").notNull(),
    /** Grows with every use within the tenant. */
    used: big("used").notNull(),
    requestId: text("request_id").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.id] }),
    index("responses_by_use").on(table.tenant, table.used),
  ],
);

/** Memories forgotten on request: per user, not per agent, as a later agent must not bring them back. */
export const forgottenMemories = memprefix.table(
  "forgotten_memories",
  { tenant: text("tenant").notNull(), userId: text("user_id").notNull(), memoryId: text("memory_id").notNull() },
  (table) => [primaryKey({ columns: [table.tenant, table.userId, table.memoryId] })],
);

/** How often users of a bucket, and memories of theirs, were deleted; see `DeletionCounts`. */
export const deletions = memprefix.table("deletions", {
  bucket: integer("bucket").primaryKey(),
  users: integer("users").notNull(),
  memories: integer("memories").notNull(),
});

/** Deletions that the memory source has not confirmed yet. */
export const sourceDeletions = memprefix.table(
  "source_deletions",
  {
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: all of the user's. */
    memoryId: text("memory_id").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenant, table.userId, table.memoryId] })],
);

/** First-token times that engines reported, the last few of each: numbers that belong to no user. */
export const firstTokenTimes = memprefix.table(
  "first_token_times",
  {
    engine: text("engine").notNull(),
    /** Counts the engine's from 1. */
    number: integer("number").notNull(),
    uncachedTokens: integer("uncached_tokens").notNull(),
    cachedTokens: integer("cached_tokens").notNull(),
    ms: doublePrecision("ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.engine, table.number] })],
);

/** The key that seals digests: one row, made when the database is first opened. */
export const digestKeys = memprefix.table("digest_keys", { id: integer("id").primaryKey(), key: bytes("key").notNull() });

/** Tenants that have, or had, an API key. */
export const tenants = memprefix.table("tenants", {
  tenant: text("tenant").primaryKey(),
  /** Random: what the tenant's cache salts are made of. */
  cacheSecret: text("cache_secret").notNull(),
  createdAt: big("created_at").notNull(),
});

/** API keys. Revoked ones are kept: once there was a key, requests without one are rejected. */
export const apiKeys = memprefix.table("api_keys", {
  id: text("id").primaryKey(),
  tenant: text("tenant")
    .notNull()
    .references(() => tenants.tenant),
  /** SHA-256 of the key's secret, base64url. */
  secretDigest: text("secret_digest").notNull(),
  label: text("label"),
  createdAt: big("created_at").notNull(),
  revokedAt: big("revoked_at"),
});

/*
 * The usage log's tables, as `usage-tables.ts` has them.
 */

const BUILDERS = {
  bigint: (name: string) => bigint(name, { mode: "number" }),
  "double precision": (name: string) => doublePrecision(name),
  text: (name: string) => text(name),
};

function tableOf(name: TableName) {
  const { columns, key, indexes = [] }: UsageTable = USAGE_TABLES[name];
  const built = Object.entries(columns).map(([column, type]) => {
    const builder = BUILDERS[typeOf(type)](column);
    const isKey = key.length === 1 && key[0] === column;
    return [column, isKey ? builder.primaryKey() : type.endsWith("?") ? builder : builder.notNull()] as const;
  });
  return memprefix.table(name, Object.fromEntries(built), (table) => {
    const column = (of: string): PgColumn => table[of] as PgColumn;
    return [
      ...(key.length === 1 ? [] : [primaryKey({ columns: key.map(column) as [PgColumn, ...PgColumn[]] })]),
      ...indexes.map(({ name: of, on, isUnique }) =>
        (isUnique ? uniqueIndex(of) : index(of)).on(...(on.map(column) as [PgColumn])),
      ),
    ];
  });
}

export const usageMarks = tableOf("usage_marks");
export const usageDeletedUsers = tableOf("usage_deleted_users");
export const usagePrompts = tableOf("usage_prompts");
export const usageNotes = tableOf("usage_notes");
