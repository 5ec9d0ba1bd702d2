import { sql } from "drizzle-orm";
import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SealedDigest } from "./digest-seal.js";
import { scopes } from "./schema.js";

/*
 * The journal: a row for every change of a scope, appended, so that commits of many users share pages. The one index that is not appended
 * to is by scope: a compose costs the disk its own bytes and that page. Both indexes can be rebuilt from the rows.
 */

const ofScope = () => scopes.scopeId;

/** Records; see `RecordKey` and `RecordBodies`. What is long stands last, so that reading a key does not read it. */
export const journal = sqliteTable(
  "journal",
  {
    /** Never reused, and in the order of writing. */
    seq: integer("seq").primaryKey({ autoIncrement: true }),
    scopeId: integer("scope_id").notNull().references(ofScope, { onDelete: "cascade" }),
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
  scopeId: integer("scope_id").primaryKey().references(ofScope, { onDelete: "cascade" }),
  n: integer("n").notNull(),
  /** CRC-32 of all other columns. */
  sum: integer("sum").notNull(),
  data: text("data").notNull(),
});

/** What records refer to, each stored once in a scope: the instructions at the head of prompts, and messages that several turns were given. */
export const instructions = sqliteTable(
  "instructions",
  {
    scopeId: integer("scope_id").notNull().references(ofScope, { onDelete: "cascade" }),
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
