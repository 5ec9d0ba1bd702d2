import { isNotNull, isNull } from "drizzle-orm";
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/*
 * The tables in SQLite (docs/internals/store.md); `postgres/schema.ts` has the same ones, and a test compares them. Times are milliseconds
 * since the epoch. JSON is text. To delete a scope, delete its rows from every table with a `scope_id`.
 */

const scopeId = () => integer("scope_id").notNull();

/** One user and agent of a tenant; the row without an agent stands for the user, too. */
export const scopes = sqliteTable(
  "scopes",
  {
    /** Never given twice, so that a user who was deleted and came back is another one. */
    id: integer("id").primaryKey({ autoIncrement: true }),
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: no agent. */
    agentId: text("agent_id").notNull(),
    createdAt: integer("created_at").notNull(),
    /** Grows with every commit. */
    version: integer("version").notNull().default(0),
    /** The version that the snapshot is of. */
    snapshotVersion: integer("snapshot_version").notNull().default(0),
    /** Memories, context index and counters, as JSON; null: none yet. */
    snapshot: text("snapshot"),
    /** In the user's row: a JSON list of memories that are never sent again. */
    forgotten: text("forgotten"),
    /** In the user's row: what the memory source has yet to delete, as JSON; null: nothing. */
    pending: text("pending"),
  },
  (table) => [uniqueIndex("scopes_by_name").on(table.tenant, table.userId, table.agentId)],
);

/** What one commit changed in a scope since its snapshot, as JSON. */
export const changes = sqliteTable(
  "changes",
  { scopeId: scopeId(), version: integer("version").notNull(), changes: text("changes").notNull() },
  (table) => [primaryKey({ columns: [table.scopeId, table.version] })],
);

/** One conversation of a scope. */
export const conversations = sqliteTable(
  "conversations",
  {
    scopeId: scopeId(),
    id: text("id").notNull(),
    /** When its newest prompt was composed. */
    usedAt: integer("used_at").notNull(),
    /** When a memory was forgotten that its end was given; null once it goes on. */
    forgottenAt: integer("forgotten_at"),
    /** Model and tools of its newest prompt, as JSON; null: unknown. */
    sentAfter: text("sent_after"),
    /** Digest of what its first message means, by which a history without a name is recognised; null: unknown. */
    opening: text("opening"),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.id] }),
    index("conversations_by_opening").on(table.scopeId, table.opening),
  ],
);

/** One turn: what one prompt added to the one before it. */
export const turns = sqliteTable(
  "turns",
  {
    scopeId: scopeId(),
    id: integer("id").notNull(),
    /** Null: a single prompt. */
    conversationId: text("conversation_id"),
    at: integer("at").notNull(),
    /** Digest of the instructions at the head of the prompt. */
    head: text("head").notNull(),
    /** The newest section, as it was sent; null: none, or a turn that was only said again. */
    section: text("section"),
    /** A JSON list: digests of the section's texts, by which it is recognised where a client sends it back; null: none. */
    sections: text("sections"),
    /** The id of the engine's answer, and of the engine's own conversation; null: not stored there. */
    responseId: text("response_id"),
    engineConversation: text("engine_conversation"),
    /** The rest, as JSON: what was injected, digests of messages and prompts, tokens. */
    turn: text("turn").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.id] }),
    index("turns_by_conversation").on(table.scopeId, table.conversationId, table.id),
    index("turns_by_response").on(table.scopeId, table.responseId).where(isNotNull(table.responseId)),
    index("turns_by_engine_conversation")
      .on(table.scopeId, table.engineConversation)
      .where(isNotNull(table.engineConversation)),
    index("single_turns_by_time").on(table.at).where(isNull(table.conversationId)),
  ],
);

/** One message of a conversation, once, as the client sent it. */
export const messages = sqliteTable(
  "messages",
  {
    scopeId: scopeId(),
    /** Empty: instructions, and messages of single prompts. */
    conversationId: text("conversation_id").notNull(),
    /** By which turns refer to it: its digest; of a single prompt's, the turn and its place. */
    key: text("key").notNull(),
    /** The first turn that has it. */
    turnId: integer("turn_id").notNull(),
    /** As JSON; instructions are a list. */
    message: text("message").notNull(),
  },
  (table) => [primaryKey({ columns: [table.scopeId, table.conversationId, table.key] })],
);

/** One request: what was asked and answered, and what the engine said of it. */
export const requests = sqliteTable(
  "requests",
  {
    scopeId: scopeId(),
    id: text("id").notNull(),
    turnId: integer("turn_id").notNull(),
    at: integer("at").notNull(),
    /** Digest of what was asked for. */
    digest: text("digest").notNull(),
    /** Node of the context index where its prompt ends. */
    leaf: integer("leaf").notNull(),
    /** Memories, plan and warnings, as JSON: the messages are made again of turns. */
    answer: text("answer").notNull(),
    /** What the engine reported, as JSON; null: nothing yet. */
    report: text("report"),
    /** 1: the engine dropped it. */
    evicted: integer("evicted").notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.scopeId, table.turnId] }),
    index("requests_by_id").on(table.id, table.scopeId),
  ],
);

/** Figures of one prompt, for the dashboard; they go after some days. */
export const prompts = sqliteTable(
  "prompts",
  {
    /** Grows with time. */
    id: integer("id").primaryKey({ autoIncrement: true }),
    scopeId: scopeId(),
    turnId: integer("turn_id").notNull(),
    tenant: text("tenant").notNull(),
    userId: text("user_id").notNull(),
    /** Empty: no agent. */
    agentId: text("agent_id").notNull(),
    conversationId: text("conversation_id"),
    requestId: text("request_id").notNull(),
    at: integer("at").notNull(),
    model: text("model").notNull(),
    /** The engine family. */
    engine: text("engine").notNull(),
    layout: text("layout").notNull(),
    policy: text("policy").notNull(),
    retention: text("retention").notNull(),
    epochBegan: text("epoch_began"),
    epochPrompts: integer("epoch_prompts"),
    /** What the same memories would have cost as a list in the newest message, and in the system prompt; null: not known. */
    inMessageTokens: integer("in_message_tokens"),
    inSystemTokens: integer("in_system_tokens"),
    promptTokens: integer("prompt_tokens").notNull(),
    expectedTokens: integer("expected_tokens").notNull(),
    uncachedTokens: integer("uncached_tokens").notNull(),
    carriedTokens: integer("carried_tokens").notNull(),
    plannedCause: text("planned_cause"),
    plannedTokens: integer("planned_tokens"),
    missCause: text("miss_cause"),
    missTokens: integer("miss_tokens"),
    reportedPromptTokens: integer("reported_prompt_tokens"),
    reportedCachedTokens: integer("reported_cached_tokens"),
    firstTokenMs: real("first_token_ms"),
    /** Of `timeBin`: percentiles of a window are those of its bins. */
    firstTokenBin: integer("first_token_bin"),
    /** `below_minimum` or `expired`: not in the cached share. */
    apart: text("apart"),
    savedMoney: real("saved_money"),
    missedMoney: real("missed_money"),
    /** A sample of how long the engine takes: which engine's, its number, and what was computed in which time. */
    law: text("law"),
    sample: integer("sample"),
    sampleUncached: integer("sample_uncached"),
    sampleCached: integer("sample_cached"),
    sampleMs: real("sample_ms"),
  },
  (table) => [
    uniqueIndex("prompts_by_turn").on(table.scopeId, table.turnId),
    index("prompts_by_time").on(table.tenant, table.at),
    index("prompts_by_sample").on(table.law, table.sample).where(isNotNull(table.law)),
  ],
);

/** One exchange that the memory source has not been given yet. */
export const writes = sqliteTable(
  "writes",
  {
    /** Grows with time. */
    id: integer("id").primaryKey({ autoIncrement: true }),
    scopeId: scopeId(),
    /** `conversation …`, `run …` or empty: the rows of one are written in order. */
    queue: text("queue").notNull(),
    /** The turn that it answers; null: it did not come through the proxy. */
    turnId: integer("turn_id"),
    at: integer("at").notNull(),
    /** Messages of users in it. */
    exchanges: integer("exchanges").notNull(),
    /** As JSON, with Mem0's options: `{ messages, runId, metadata, infer }`. */
    addition: text("addition").notNull(),
    /** In a queue's first row: until when an instance writes it, or waits after a failure. */
    heldUntil: integer("held_until").notNull().default(0),
  },
  (table) => [index("writes_by_queue").on(table.scopeId, table.queue, table.id)],
);

/** API keys. */
export const keys = sqliteTable("keys", {
  id: text("id").primaryKey(),
  tenant: text("tenant").notNull(),
  /** SHA-256 of the secret. */
  secretDigest: text("secret_digest").notNull(),
  label: text("label"),
  createdAt: integer("created_at").notNull(),
  revokedAt: integer("revoked_at"),
  /** What the tenant's cache salts are derived from: the same in all of its rows. */
  cacheSecret: text("cache_secret").notNull(),
});
