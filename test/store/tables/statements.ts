import type Database from "better-sqlite3";
import type { forgottenMemories, scopes } from "../../../src/store/database/schema.js";
import { prepare, prepareValue, type SqliteRow } from "../../../src/store/database/statements.js";
import type {
  blocks,
  conversations,
  heads,
  indexNodes,
  memoryVersions,
  orderingRows,
  requests,
  sections,
  turns,
} from "../../../src/store/upgrade/table-schema.js";
import {
  prepareStateReads,
  type RequestRow,
  SELECT_REQUESTS,
  SELECT_TURNS,
  type TurnRow,
} from "../../../src/store/upgrade/table-statements.js";

type Flag = 0 | 1;
type OfScope = Pick<SqliteRow<typeof turns>, "scopeId">;

/** What names a scope; no agent is the empty one. */
type ScopeName = Pick<SqliteRow<typeof scopes>, "tenant" | "userId" | "agentId">;
type ScopeCounters = Pick<
  SqliteRow<typeof scopes>,
  "nextLabel" | "nextNode" | "nextTurn" | "requests" | "bankedTokens"
>;
type ScopeRow = ScopeCounters & Pick<SqliteRow<typeof scopes>, "scopeId" | "version">;

const IS_NAMED = "tenant = @tenant and user_id = @userId and agent_id = @agentId";

/** The statements of the table store. */
export type Statements = ReturnType<typeof prepareStatements>;

// The return type is the list of statements; writing it out would repeat it.
export function prepareStatements(sqlite: Database.Database) {
  return {
    ...prepareStateReads(sqlite),
    ...scopeStatements(sqlite),
    ...registerStatements(sqlite),
    ...indexStatements(sqlite),
    ...turnStatements(sqlite),
    ...requestStatements(sqlite),
  };
}

function scopeStatements(sqlite: Database.Database) {
  return {
    scopeId: prepareValue<ScopeName, number>(sqlite, `select scope_id from users where ${IS_NAMED}`),
    version: prepare<ScopeName, { readonly scopeId: number; readonly commits: number }>(
      sqlite,
      `select scope_id as scopeId, table_version as commits from users where ${IS_NAMED}`,
    ),
    /** Gives the new scope's number; nothing where there is one of this name. */
    addScope: prepareValue<ScopeName & ScopeCounters & Pick<SqliteRow<typeof scopes>, "createdAt">, number>(
      sqlite,
      `insert into users
           (tenant, user_id, agent_id, table_version, next_label, next_node, next_turn, requests, created_at, banked_tokens)
         values
           (@tenant, @userId, @agentId, 1, @nextLabel, @nextNode, @nextTurn, @requests, @createdAt, @bankedTokens)
         on conflict do nothing returning scope_id`,
    ),
    // By name too: the number of a scope whose first commit was undone is given again.
    moveScope: prepare<ScopeName & ScopeRow>(
      sqlite,
      `update users set table_version = table_version + 1, next_label = @nextLabel, next_node = @nextNode, next_turn = @nextTurn,
         requests = @requests, banked_tokens = @bankedTokens
       where scope_id = @scopeId and table_version = @version and ${IS_NAMED}`,
    ),
  };
}

function registerStatements(sqlite: Database.Database) {
  return {
    keepBlock: prepare<SqliteRow<typeof blocks>>(
      sqlite,
      `insert into blocks (scope_id, label, text, tokens, superseded_by)
       values (@scopeId, @label, @text, @tokens, @supersededBy)
       on conflict (scope_id, label) do update set superseded_by = excluded.superseded_by`,
    ),
    removeBlock: prepare<OfScope & Pick<SqliteRow<typeof blocks>, "label">>(
      sqlite,
      "delete from blocks where scope_id = @scopeId and label = @label",
    ),

    keepVersion: prepare<SqliteRow<typeof memoryVersions>>(
      sqlite,
      `insert into memory_versions (scope_id, memory_id, label, current, template, own_start, own_length)
       values (@scopeId, @memoryId, @label, @current, @template, @ownStart, @ownLength)
       on conflict (scope_id, label, memory_id) do update set current = excluded.current,
         template = excluded.template, own_start = excluded.own_start, own_length = excluded.own_length`,
    ),
    /** For all labels (a JSON array) in one statement. */
    removeVersionsOf: prepare<OfScope & { readonly labels: string }>(
      sqlite,
      `delete from memory_versions
       where scope_id = @scopeId and label in (select value from json_each(@labels))`,
    ),
    removeVersionsBy: prepare<OfScope & Pick<SqliteRow<typeof memoryVersions>, "memoryId">>(
      sqlite,
      "delete from memory_versions where scope_id = @scopeId and memory_id = @memoryId",
    ),
    keepForgotten: prepare<SqliteRow<typeof forgottenMemories>>(
      sqlite,
      `insert into forgotten_memories (tenant, user_id, memory_id) values (@tenant, @userId, @memoryId)
       on conflict do nothing`,
    ),
  };
}

function indexStatements(sqlite: Database.Database) {
  return {
    /** A node's anchor never changes. */
    keepNode: prepare<SqliteRow<typeof indexNodes>>(
      sqlite,
      `insert into index_nodes
         (scope_id, id, parent, anchor, bracketed, run, position, next_position, uses, live, last_used, used_at, tokens)
       values
         (@scopeId, @id, @parent, @anchor, @bracketed, @run, @position, @nextPosition, @uses, @live, @lastUsed, @usedAt, @tokens)
       on conflict (scope_id, id) do update set parent = excluded.parent, run = excluded.run,
         position = excluded.position, next_position = excluded.next_position, uses = excluded.uses,
         live = excluded.live, last_used = excluded.last_used, used_at = excluded.used_at, tokens = excluded.tokens`,
    ),
    removeNode: prepare<OfScope & Pick<SqliteRow<typeof indexNodes>, "id">>(
      sqlite,
      "delete from index_nodes where scope_id = @scopeId and id = @id",
    ),

    keepOrderingRow: prepare<SqliteRow<typeof orderingRows>>(
      sqlite,
      `insert into ordering_rows (scope_id, kind, id, row) values (@scopeId, @kind, @id, @row)
       on conflict (scope_id, kind, id) do update set row = excluded.row`,
    ),
    removeOrderingRow: prepare<Omit<SqliteRow<typeof orderingRows>, "row">>(
      sqlite,
      "delete from ordering_rows where scope_id = @scopeId and kind = @kind and id = @id",
    ),
  };
}

function turnStatements(sqlite: Database.Database) {
  return {
    /** Begins a conversation at `lastTurnAt`, or counts one more turn of it. */
    keepConversation: prepare<Pick<SqliteRow<typeof conversations>, "scopeId" | "id" | "lastTurnAt">>(
      sqlite,
      `insert into conversations (scope_id, id, turns, created_at, last_turn_at)
       values (@scopeId, @id, 1, @lastTurnAt, @lastTurnAt)
       on conflict (scope_id, id) do update set turns = turns + 1, last_turn_at = excluded.last_turn_at`,
    ),
    /** The ids of a head's messages. */
    head: prepareValue<Pick<SqliteRow<typeof heads>, "scopeId" | "digest">, SqliteRow<typeof heads>["messages"]>(
      sqlite,
      "select messages from heads where scope_id = @scopeId and digest = @digest",
    ),
    knowsSection: prepareValue<SqliteRow<typeof sections>, Flag>(
      sqlite,
      "select exists (select 1 from sections where scope_id = @scopeId and digest = @digest)",
    ),
    keepSection: prepare<SqliteRow<typeof sections>>(
      sqlite,
      "insert into sections (scope_id, digest) values (@scopeId, @digest) on conflict do nothing",
    ),

    turn: prepare<OfScope & Pick<TurnRow, "id">, TurnRow>(
      sqlite,
      `${SELECT_TURNS} where scope_id = @scopeId and id = @id`,
    ),
    /** From a turn on, in order of their ids. */
    conversationTurns: prepare<OfScope & { readonly conversationId: string; readonly from: number }, TurnRow>(
      sqlite,
      `${SELECT_TURNS} where scope_id = @scopeId and conversation_id = @conversationId and id >= @from order by id`,
    ),
    newestTurn: prepare<OfScope & { readonly conversationId: string }, TurnRow>(
      sqlite,
      `${SELECT_TURNS} where scope_id = @scopeId and conversation_id = @conversationId order by id desc limit 1`,
    ),
    /** The id of the last turn but so many. */
    lastTurnBut: prepareValue<OfScope & { readonly conversationId: string; readonly skipped: number }, number>(
      sqlite,
      `select id from turns where scope_id = @scopeId and conversation_id = @conversationId
       order by id desc limit 1 offset @skipped`,
    ),
    addTurn: prepare<SqliteRow<typeof turns>>(
      sqlite,
      `insert into turns (scope_id, id, conversation_id, parent, given, placement, injection, retention, fresh_start,
         requested, head, prompt, anchor, prompt_tokens, computed_tokens, epoch, behind, created_at)
       values (@scopeId, @id, @conversationId, @parent, @given, @placement, @injection, @retention, @freshStart,
         @requested, @head, @prompt, @anchor, @promptTokens, @computedTokens, @epoch, @behind, @createdAt)`,
    ),
  };
}

function requestStatements(sqlite: Database.Database) {
  type Named = Pick<SqliteRow<typeof requests>, "scopeId" | "requestId">;
  return {
    request: prepare<Named, RequestRow>(
      sqlite,
      `${SELECT_REQUESTS} where scope_id = @scopeId and request_id = @requestId`,
    ),
    requestsBefore: prepare<OfScope & { readonly turn: number; readonly limit: number }, RequestRow>(
      sqlite,
      `${SELECT_REQUESTS} where scope_id = @scopeId and turn < @turn order by turn desc limit @limit`,
    ),
    /** A request whose stored answer was erased is composed again under the same id. */
    addRequest: prepare<Omit<SqliteRow<typeof requests>, "evicted" | "observed">>(
      sqlite,
      `insert into requests (scope_id, request_id, turn, leaf, body, answer, evicted, created_at)
       values (@scopeId, @requestId, @turn, @leaf, @body, @answer, 0, @createdAt)
       on conflict (request_id, scope_id) do update set turn = excluded.turn, leaf = excluded.leaf,
         body = excluded.body, answer = excluded.answer, evicted = excluded.evicted, observed = null,
         created_at = excluded.created_at`,
    ),
    markEvicted: prepare<Named>(
      sqlite,
      "update requests set evicted = 1 where scope_id = @scopeId and request_id = @requestId",
    ),
    observe: prepare<Named & { readonly observed: string }>(
      sqlite,
      "update requests set observed = @observed where scope_id = @scopeId and request_id = @requestId",
    ),
  };
}

/** Values per statement; SQLite allows 32,766 parameters. */
const AT_ONCE = 500;

/** Calls `work` with pieces of a list, each small enough for one statement. */
export function inPieces<T>(all: readonly T[], work: (piece: T[]) => void): void {
  for (let at = 0; at < all.length; at += AT_ONCE) work(all.slice(at, at + AT_ONCE));
}
