import { isNotNull } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { FIXED_RETENTIONS } from "../../core/conversation/retention.js";
import { SECTION_PLACEMENTS } from "../../core/prompt/section-placement.js";
import type { SealedDigest } from "../database/digest-seal.js";
import { scopes } from "../database/schema.js";

/*
 * The tables in which scopes were stored before there was a journal. Migrations still make them, in a new file too, and opening drops them
 * once no scope is in them. Memory text is in `blocks` only, the application's messages in `messages` only. Digests are sealed. Tables of
 * short rows are WITHOUT ROWID, which drizzle cannot declare: migration 0009 does.
 */

const digest = (name: string) => text(name).$type<SealedDigest>();

const ofScope = () =>
  integer("scope_id")
    .notNull()
    .references(() => scopes.scopeId, { onDelete: "cascade" });

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
