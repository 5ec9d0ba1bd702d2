import { isNotNull } from "drizzle-orm";
import { blob, index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { FIXED_RETENTIONS } from "../../core/conversation/retention.js";
import { SECTION_PLACEMENTS } from "../../core/prompt/section-placement.js";
import type { SealedDigest } from "./digest-seal.js";

/*
 * A row of `scopes` is one (tenant, user, agent). Every other table with a scope's number belongs to it and is deleted with it. Memory text
 * is in `blocks` only, the application's messages in `messages` only, so that an answer can be repeated. Digests are sealed.
 *
 * A compose writes a few short rows into many tables, and SQLite writes whole pages: a compose costs the disk pages, not rows. So there are
 * few indexes, and tables of short rows are WITHOUT ROWID (https://sqlite.org/withoutrowid.html), one tree instead of two. Drizzle cannot
 * declare that: migration 0009 does.
 */

const digest = (name: string) => text(name).$type<SealedDigest>();

const ofScope = () =>
  integer("scope_id")
    .notNull()
    .references(() => scopes.scopeId, { onDelete: "cascade" });

/** Scopes: a row for each agent of a user, and one without. The table is called `users` in the file, from before there were agents. */
export const scopes = sqliteTable(
  "users",
  {
    /** Never reused, so that a user who was deleted and came back is not taken for the deleted one. */
    scopeId: integer("scope_id").primaryKey({ autoIncrement: true }),
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: no agent. */
    agentId: text("agent_id").notNull(),
    /** 0: the scope is in the journal. Else it is in the tables from before, and this is its version there. */
    version: integer("table_version").notNull(),
    nextLabel: integer("next_label").notNull(),
    nextNode: integer("next_node").notNull(),
    nextTurn: integer("next_turn").notNull(),
    requests: integer("requests").notNull(),
    createdAt: integer("created_at").notNull(),
    /** Tokens in the memory bank; 0 in rows from before it was stored. */
    bankedTokens: integer("banked_tokens").notNull().default(0),
  },
  (table) => [uniqueIndex("users_scope").on(table.tenant, table.userId, table.agentId)],
);

export const blocks = sqliteTable(
  "blocks",
  {
    scopeId: ofScope(),
    label: integer("label").notNull(),
    text: text("text").notNull(),
    tokens: integer("tokens").notNull(),
    supersededBy: integer("superseded_by"),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.label] })],
);

/** A memory at one version of its text. Keyed by label first, so that new rows are appended. */
export const memoryVersions = sqliteTable(
  "memory_versions",
  {
    scopeId: ofScope(),
    memoryId: text("memory_id").notNull(),
    label: integer("label").notNull(),
    current: integer("current", { mode: "boolean" }).notNull(),
    /** Digest of the block template; null: the block's text is the memory's own. */
    template: text("template"),
    /** Where the memory's own words begin in the block's text, in UTF-16 units, and how many they are; null: they are all of it. */
    ownStart: integer("own_start"),
    ownLength: integer("own_length"),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.label, table.memoryId] })],
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

export const indexNodes = sqliteTable(
  "index_nodes",
  {
    scopeId: ofScope(),
    id: integer("id").notNull(),
    parent: integer("parent"),
    anchor: digest("anchor"),
    /** 1 on an anchor's root whose blocks begin with a label in brackets, as those of earlier versions did. */
    bracketed: integer("bracketed").notNull().default(1),
    /** JSON array of labels. */
    run: text("run").notNull(),
    position: integer("position").notNull(),
    nextPosition: integer("next_position").notNull(),
    uses: integer("uses").notNull(),
    live: integer("live").notNull(),
    lastUsed: integer("last_used").notNull(),
    /** Milliseconds; 0 in rows from before it was stored: for a TTL those are long unused. */
    usedAt: integer("used_at").notNull().default(0),
    /** 0 in rows from before it was stored; set when the node is served again. */
    tokens: integer("tokens").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.id] })],
);

/** State of ordering policies outside the index, as JSON: recent retrievals, accesses (by turn), nodes of the cluster tree, workers. */
export const orderingRows = sqliteTable(
  "ordering_rows",
  {
    scopeId: ofScope(),
    kind: text("kind", { enum: ["recent", "access", "cluster", "worker"] }).notNull(),
    id: integer("id").notNull(),
    row: text("row").notNull(),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.kind, table.id] })],
);

export const conversations = sqliteTable(
  "conversations",
  {
    scopeId: ofScope(),
    id: text("id").notNull(),
    turns: integer("turns").notNull(),
    createdAt: integer("created_at").notNull(),
    lastTurnAt: integer("last_turn_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.id] })],
);

/**
 * The application's messages, each stored once, however many prompts contain it. Deleted with the last turn that refers to it, in the same
 * transaction. Found by its digest; messages with one digest and different JSON are separate rows.
 */
export const messages = sqliteTable(
  "messages",
  {
    id: integer("id").primaryKey(),
    scopeId: ofScope(),
    digest: digest("digest").notNull(),
    /** Digest of its meaning, equal for the ways in which clients write one message; null: the same as `digest`. */
    meant: digest("meant"),
    /** JSON; null once erased because it quoted a forgotten memory. */
    body: text("body"),
  },
  (table) => [index("messages_by_digest").on(table.scopeId, table.digest)],
);

/** The instructions at the head of prompts, each stored once. */
export const heads = sqliteTable(
  "heads",
  {
    scopeId: ofScope(),
    digest: digest("digest").notNull(),
    /** JSON array of ids in `messages`; null where an earlier version erased them. */
    messages: text("messages"),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.digest] })],
);

export const turns = sqliteTable(
  "turns",
  {
    scopeId: ofScope(),
    id: integer("id").notNull(),
    conversationId: text("conversation_id"),
    parent: integer("parent"),
    /** JSON array of ids in `messages`. */
    given: text("given").notNull(),
    placement: text("placement", { enum: SECTION_PLACEMENTS }).notNull(),
    /** JSON of an injection: labels, never text. */
    injection: text("injection").notNull(),
    /** What later prompts keep of the injection. */
    retention: text("retention", { enum: FIXED_RETENTIONS }).notNull().default("keep"),
    /** Whether earlier turns' injections are dropped from here on. */
    freshStart: integer("fresh_start", { mode: "boolean" }).notNull().default(false),
    /** JSON array of the requested labels. */
    requested: text("requested").notNull().default("[]"),
    head: digest("head").notNull(),
    prompt: digest("prompt").notNull(),
    anchor: digest("anchor").notNull(),
    promptTokens: integer("prompt_tokens").notNull(),
    /** Those of them that the engine had to compute. */
    computedTokens: integer("computed_tokens").notNull().default(0),
    /** The first turn of its path. */
    epoch: integer("epoch").notNull().default(0),
    /** Digest of the meaning of the message before its given ones that was left out of the prompt; null: none. */
    behind: digest("behind"),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.id] }),
    index("turns_conversation")
      .on(table.scopeId, table.conversationId, table.id)
      .where(isNotNull(table.conversationId)),
  ],
);

/** Digests of every section ever sent, to recognise our own text when a client sends it back. */
export const sections = sqliteTable("sections", { scopeId: ofScope(), digest: digest("digest").notNull() }, (table) => [
  primaryKey({ columns: [table.scopeId, table.digest] }),
]);

export const requests = sqliteTable(
  "requests",
  {
    scopeId: ofScope(),
    requestId: text("request_id").notNull(),
    turn: integer("turn").notNull(),
    /** Node of the context index where the served sequence ends. */
    leaf: integer("leaf").notNull(),
    /** Digest of the request, to detect an id that is reused for another request. */
    body: digest("body").notNull(),
    /** JSON: placements, plan and warnings; the messages are rebuilt from the turns. */
    answer: text("answer").notNull(),
    evicted: integer("evicted", { mode: "boolean" }).notNull(),
    /** JSON: what the engine reported of this request. */
    observed: text("observed"),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    // By id first: engines report requests by id alone, and our own ids grow with time.
    primaryKey({ columns: [table.requestId, table.scopeId] }),
    index("requests_by_turn").on(table.scopeId, table.turn),
  ],
);

/**
 * Responses of the proxy's, for requests that continue one by its id: which prompt led to it, and what the engine said. Removed with the
 * prompt, and all of a user's with any memory that the user forgets. A tenant has so many, the least recently used are removed first.
 */
export const responses = sqliteTable(
  "responses",
  {
    scopeId: ofScope(),
    /** Of the response's id. */
    id: digest("id").notNull(),
    tenant: text("tenant").notNull(),
    /** Grows with every use within the tenant. */
    used: integer("used").notNull(),
    requestId: text("request_id").notNull(),
    /** Whether the engine keeps the response, and takes its id. */
    held: integer("held", { mode: "boolean" }).notNull(),
    /** Messages that stand before the next request's input at such an engine, and their digest. */
    sentMessages: integer("sent_messages").notNull(),
    sent: digest("sent").notNull(),
    /** JSON array of the answer's messages. */
    output: text("output").notNull(),
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
