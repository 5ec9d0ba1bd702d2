import type Database from "better-sqlite3";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { forgottenMemories, scopes } from "../database/schema.js";
import type { ScopeKey } from "../database/scope-key.js";
import { prepare, type SqliteRow } from "../database/statements.js";
import type { blocks, indexNodes, memoryVersions, orderingRows, requests, turns } from "./table-schema.js";

/** A row that is read by its scope's number, and without it. */
type RowOfScope<T extends SQLiteTable> = Omit<SqliteRow<T>, "scopeId">;
type OfScope = Pick<SqliteRow<typeof turns>, "scopeId">;

type ScopeRow = Pick<
  SqliteRow<typeof scopes>,
  "scopeId" | "version" | "nextLabel" | "nextNode" | "nextTurn" | "requests" | "bankedTokens"
>;

export type BlockRow = RowOfScope<typeof blocks>;
export type VersionRow = RowOfScope<typeof memoryVersions>;
export type NodeRow = RowOfScope<typeof indexNodes>;
export type OrderingRow = RowOfScope<typeof orderingRows>;
export type TurnRow = RowOfScope<typeof turns>;
export type RequestRow = RowOfScope<typeof requests>;

export const SELECT_TURNS = `select id, conversation_id as conversationId, parent, given, placement, injection, retention,
  fresh_start as freshStart, requested, head, prompt, anchor, prompt_tokens as promptTokens, computed_tokens as computedTokens,
  epoch, behind, created_at as createdAt from turns`;
export const SELECT_REQUESTS = `select request_id as requestId, turn, leaf, body, answer, evicted, observed, created_at as createdAt
  from requests`;

/** What reads a scope's state from the tables. */
export type StateStatements = ReturnType<typeof prepareStateReads>;

// The return type is the list of statements; writing it out would repeat it.
export function prepareStateReads(sqlite: Database.Database) {
  return {
    scope: prepare<ScopeKey, ScopeRow>(
      sqlite,
      `select scope_id as scopeId, table_version as version, next_label as nextLabel, next_node as nextNode, next_turn as nextTurn, requests,
         banked_tokens as bankedTokens
       from users where tenant = @tenant and user_id = @userId and agent_id = @agentId`,
    ),
    blocks: prepare<OfScope, BlockRow>(
      sqlite,
      `select label, text, tokens, superseded_by as supersededBy from blocks where scope_id = @scopeId order by label`,
    ),
    versions: prepare<OfScope, VersionRow>(
      sqlite,
      `select memory_id as memoryId, label, current, template, own_start as ownStart, own_length as ownLength
       from memory_versions
       where scope_id = @scopeId order by label, memory_id`,
    ),
    forgotten: prepare<ScopeKey, Pick<SqliteRow<typeof forgottenMemories>, "memoryId">>(
      sqlite,
      "select memory_id as memoryId from forgotten_memories where tenant = @tenant and user_id = @userId",
    ),
    nodes: prepare<OfScope, NodeRow>(
      sqlite,
      `select id, parent, anchor, bracketed, run, position, next_position as nextPosition, uses, live, last_used as lastUsed,
         used_at as usedAt, tokens
       from index_nodes where scope_id = @scopeId order by id`,
    ),
    orderingRows: prepare<OfScope, OrderingRow>(
      sqlite,
      `select kind, id, row from ordering_rows
       where scope_id = @scopeId and kind in ('recent', 'worker') order by id`,
    ),
    publishedRows: prepare<OfScope & Pick<OrderingRow, "kind">, OrderingRow>(
      sqlite,
      "select kind, id, row from ordering_rows where scope_id = @scopeId and kind = @kind order by id",
    ),
  };
}
