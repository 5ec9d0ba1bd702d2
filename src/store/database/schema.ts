import { isNotNull } from "drizzle-orm";
import { blob, index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { FIXED_RETENTIONS, SECTION_PLACEMENTS } from "../../core/index.js";
import type { SealedDigest } from "./digest-seal.js";

/*
 * A row of `scopes` is one (tenant, user, agent). Every other table that names a scope belongs to it and goes with it. Memory text stands
 * in `blocks` only, and what the caller's application said in `messages` only, so that an answer can be repeated. Digests are sealed.
 *
 * A compose writes a few short rows into many tables, and SQLite writes a whole page for each that it touches: pages, not rows, are what
 * a compose costs the disk. So an index has to earn its page, and tables of a few bytes a row are WITHOUT ROWID
 * (https://sqlite.org/withoutrowid.html), one tree instead of two. Drizzle cannot say so: migration 0009 does.
 */

const digest = (name: string) => text(name).$type<SealedDigest>();

const ofScope = () =>
  integer("scope_id")
    .notNull()
    .references(() => scopes.scopeId, { onDelete: "cascade" });

/** Scopes, under the name that the table has had since there were no agents: a row for each agent of a user, and one without. */
export const scopes = sqliteTable(
  "users",
  {
    /** Never reused, so that a user who was deleted and came back is not taken for the old one. */
    scopeId: integer("scope_id").primaryKey({ autoIncrement: true }),
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: no agent. */
    agentId: text("agent_id").notNull(),
    /** Grows with every commit; a process whose working state is older reloads. */
    version: integer("version").notNull(),
    nextLabel: integer("next_label").notNull(),
    nextNode: integer("next_node").notNull(),
    nextTurn: integer("next_turn").notNull(),
    requests: integer("requests").notNull(),
    createdAt: integer("created_at").notNull(),
    /** What is in the memory bank; 0 in rows from before it was kept. */
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

/** A memory at one version of its text. By label first: what is new comes behind what is there. */
export const memoryVersions = sqliteTable(
  "memory_versions",
  {
    scopeId: ofScope(),
    memoryId: text("memory_id").notNull(),
    label: integer("label").notNull(),
    current: integer("current", { mode: "boolean" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.label, table.memoryId] })],
);

/**
 * Memories forgotten on request; only the id stays, so that they are never sent again. A user's, whatever the agent: an agent that comes
 * later must not bring them back.
 */
export const forgottenMemories = sqliteTable(
  "forgotten_memories",
  { tenant: text("tenant").notNull(), userId: text("user_id").notNull(), memoryId: text("memory_id").notNull() },
  (table) => [primaryKey({ columns: [table.tenant, table.userId, table.memoryId] })],
);

/**
 * How often users, and memories of theirs, were deleted: what is under way in any process compares it before it goes on. Counts users by
 * a hash of their names, several in one bucket, so that nobody's name stays behind.
 */
export const deletions = sqliteTable("deletions", {
  bucket: integer("bucket").primaryKey(),
  users: integer("users").notNull(),
  memories: integer("memories").notNull(),
});

/**
 * What is deleted here and not yet known to be deleted from the source that memstem keeps: written with the deletion, removed once the
 * source has done it. Whatever process comes next to this user finishes it first.
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
    /** JSON array of labels. */
    run: text("run").notNull(),
    position: integer("position").notNull(),
    nextPosition: integer("next_position").notNull(),
    uses: integer("uses").notNull(),
    live: integer("live").notNull(),
    lastUsed: integer("last_used").notNull(),
    /** Milliseconds; 0 in rows from before it was kept: a TTL takes those for long unused. */
    usedAt: integer("used_at").notNull().default(0),
    /** 0 in rows from before it was kept; set when the node is served again. */
    tokens: integer("tokens").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.id] })],
);

/** What policies order by beside the index, a JSON row each: recent retrievals, accesses (by turn), nodes of the cluster tree, workers. */
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
 * What the caller's application said, each message once, however many prompts it was sent with. Goes with the last turn that refers to it,
 * in the same transaction. Found by its digest; messages that count as the same but differ in their JSON are rows of their own.
 */
export const messages = sqliteTable(
  "messages",
  {
    id: integer("id").primaryKey(),
    scopeId: ofScope(),
    digest: digest("digest").notNull(),
    /** Digest of what it means, where a client may write it differently; null: the same. */
    meant: digest("meant"),
    /** JSON; null once it was erased because it quoted a forgotten memory. */
    body: text("body"),
  },
  (table) => [index("messages_by_digest").on(table.scopeId, table.digest)],
);

/** The instructions at the head of prompts, each kept once. */
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
    /** Whether nothing that earlier turns injected stands from here on. */
    freshStart: integer("fresh_start", { mode: "boolean" }).notNull().default(false),
    /** JSON array of the labels that were asked for. */
    requested: text("requested").notNull().default("[]"),
    head: digest("head").notNull(),
    prompt: digest("prompt").notNull(),
    anchor: digest("anchor").notNull(),
    promptTokens: integer("prompt_tokens").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.id] }),
    index("turns_conversation").on(table.scopeId, table.conversationId).where(isNotNull(table.conversationId)),
  ],
);

/** Digests of every section ever sent, to know our own text when a client sends it back. */
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
    /** Digest of the request, to notice an id that is used for another one. */
    body: digest("body").notNull(),
    /** JSON: placements, plan and warnings; the messages are built again from the turns. */
    answer: text("answer").notNull(),
    evicted: integer("evicted", { mode: "boolean" }).notNull(),
    /** JSON: what the engine reported of this request. */
    observed: text("observed"),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    // By id first: engines report requests by their ids alone, and ids that we make grow with time.
    primaryKey({ columns: [table.requestId, table.scopeId] }),
    index("requests_by_turn").on(table.scopeId, table.turn),
  ],
);

/** First-token times that engines reported, the last few of each: numbers only, nobody's. */
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

/** The key that digests are sealed with: one row, made with the database. In a table of no scope, so that no export has it. */
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

/** API keys. A revoked one stays: where there was ever a key, nobody gets in without one. */
export const apiKeys = sqliteTable("api_keys", {
  id: text("id").primaryKey(),
  tenant: text("tenant")
    .notNull()
    .references(() => tenants.tenant),
  /** SHA-256 of the key's secret, base64url. The secret is random and as long as the digest, so there is nothing to guess it by. */
  secretDigest: text("secret_digest").notNull(),
  label: text("label"),
  createdAt: integer("created_at").notNull(),
  revokedAt: integer("revoked_at"),
});
