import { sql } from "drizzle-orm";
import { blob, index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { SealedDigest } from "../src/store/database/digest-seal.js";

/*
 * The tables beside the journal's. A row of `scopes` is one (tenant, user, agent). Every other table with a scope's number belongs to it and
 * is deleted with it.
 */

const ofScope = () =>
  integer("scope_id")
    .notNull()
    .references(() => scopes.scopeId, { onDelete: "cascade" });

/** Scopes: a row for each agent of a user, and one without. Its version is the number of its newest record. */
export const scopes = sqliteTable(
  "scopes",
  {
    /** Never reused, so that a user who was deleted and came back is not taken for the deleted one. */
    scopeId: integer("scope_id").primaryKey({ autoIncrement: true }),
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: no agent. */
    agentId: text("agent_id").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [uniqueIndex("scopes_by_name").on(table.tenant, table.userId, table.agentId)],
);

/**
 * Memories forgotten on request; only the id is kept, so that they are never sent again. Per user, not per agent: a later agent must not
 * bring them back.
 */
export const forgottenMemories = sqliteTable(
  "forgotten_memories",
  { tenant: text("tenant").notNull(), userId: text("user_id").notNull(), memoryId: text("memory_id").notNull() },
  (table) => [primaryKey({ columns: [table.tenant, table.userId, table.memoryId] })],
);

/**
 * How often users, and memories of theirs, were deleted: requests under way in any process compare it before they continue. Counted by a
 * hash of the user's name, several users in one bucket, so that no name is kept.
 */
export const deletions = sqliteTable("deletions", {
  bucket: integer("bucket").primaryKey(),
  users: integer("users").notNull(),
  memories: integer("memories").notNull(),
});

/**
 * Deletions that the memory source has not confirmed yet: written with the deletion, removed once confirmed. The next process that handles
 * this user finishes them first.
 */
export const sourceDeletions = sqliteTable(
  "source_deletions",
  {
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: all of the user's. */
    memoryId: text("memory_id").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenant, table.userId, table.memoryId] })],
);

/**
 * Which prompt led to a response of the engine's, or is the newest of an engine's conversation. Removed with the prompt, and with any memory
 * of it that the user forgets. A tenant has so many, the least recently used are removed first.
 */
export const responses = sqliteTable(
  "responses",
  {
    scopeId: ofScope(),
    /** As the engine names it: receipts of forgetting name it, too. */
    id: text("id").notNull(),
    tenant: text("tenant").notNull(),
    /** Grows with every use within the tenant. */
    used: integer("used").notNull(),
    requestId: text("request_id").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.id] }),
    index("responses_by_request").on(table.requestId, table.scopeId),
    index("responses_by_use").on(table.tenant, table.used),
  ],
);

/** First-token times that engines reported, the last few of each: numbers that belong to no user. */
export const firstTokenTimes = sqliteTable(
  "first_token_times",
  {
    engine: text("engine").notNull(),
    /** Counts the engine's from 1. */
    number: integer("number").notNull(),
    uncachedTokens: integer("uncached_tokens").notNull(),
    cachedTokens: integer("cached_tokens").notNull(),
    ms: real("ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.engine, table.number] })],
);

/** The key that seals digests: one row, made with the database. The table belongs to no scope, so that no export contains it. */
export const digestKeys = sqliteTable("digest_keys", {
  id: integer("id").primaryKey(),
  key: blob("key", { mode: "buffer" }).notNull(),
});

/** Tenants that have, or had, an API key. */
export const tenants = sqliteTable("tenants", {
  tenant: text("tenant").primaryKey(),
  /** Random: what the tenant's cache salts are made of. */
  cacheSecret: text("cache_secret").notNull(),
  createdAt: integer("created_at").notNull(),
});

/** API keys. Revoked ones are kept: once there was a key, requests without one are rejected. */
export const apiKeys = sqliteTable("api_keys", {
  id: text("id").primaryKey(),
  tenant: text("tenant")
    .notNull()
    .references(() => tenants.tenant),
  /** SHA-256 of the key's secret, base64url. The secret is random and as long as the digest, so it cannot be guessed. */
  secretDigest: text("secret_digest").notNull(),
  label: text("label"),
  createdAt: integer("created_at").notNull(),
  revokedAt: integer("revoked_at"),
});

/*
 * The journal: a row for every change of a scope, appended, so that commits of many users share pages. The one index that is not appended
 * to is by scope: a compose costs the disk its own bytes and that page. Both indexes can be rebuilt from the rows.
 */

/** Records; see `RecordKey` and `RecordBodies`. What is long stands last, so that reading a key does not read it. */
export const journal = sqliteTable(
  "journal",
  {
    /** Never reused, and in the order of writing. */
    seq: integer("seq").primaryKey({ autoIncrement: true }),
    scopeId: ofScope(),
    n: integer("n").notNull(),
    /** Index in `RECORD_KINDS`. */
    kind: integer("kind").notNull(),
    at: integer("at").notNull(),
    turn: integer("turn").notNull(),
    turns: integer("turns").notNull(),
    conversation: integer("conversation"),
    requestId: text("request_id"),
    leaf: integer("leaf"),
    /** CRC-32 of all other columns but `seq`. */
    sum: integer("sum").notNull(),
    changes: text("changes"),
    said: text("said"),
  },
  (table) => [
    // Covers counting and looking for turns and conversations.
    index("journal_by_scope").on(table.scopeId, table.n, table.turn, table.turns, table.conversation, table.kind),
    // By id first: engines report requests by id alone, and our own ids grow with time.
    index("journal_by_request").on(table.requestId, table.scopeId).where(sql`request_id is not null`),
  ],
);

/** A scope's state after its record `n`. */
export const snapshots = sqliteTable("snapshots", {
  scopeId: integer("scope_id")
    .primaryKey()
    .references(() => scopes.scopeId, { onDelete: "cascade" }),
  n: integer("n").notNull(),
  /** CRC-32 of all other columns. */
  sum: integer("sum").notNull(),
  data: text("data").notNull(),
});

/** What records refer to, each stored once in a scope: the instructions at the head of prompts, and messages that several turns were given. */
export const instructions = sqliteTable(
  "instructions",
  {
    scopeId: ofScope(),
    digest: text("digest").$type<SealedDigest>().notNull(),
    /** JSON of its messages. */
    messages: text("messages").notNull(),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.digest] })],
);

/**
 * Which memories scopes have, or had, for walks through all scopes: a row for each record that brought new ones. Keyed like the record,
 * so that rows are appended, and go with their scope.
 */
export const knownMemories = sqliteTable("known_memories", {
  seq: integer("seq")
    .primaryKey()
    .references(() => journal.seq, { onDelete: "cascade" }),
  scopeId: integer("scope_id").notNull(),
  /** Keyed hashes of their ids, 4 bytes each, big-endian. */
  hashes: blob("hashes", { mode: "buffer" }).notNull(),
});
