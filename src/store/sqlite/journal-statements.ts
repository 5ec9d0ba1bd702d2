import type Database from "better-sqlite3";
import type { StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type { responses } from "../database/schema.js";
import { readScope, type ScopeKey } from "../database/scope-key.js";
import { prepare, prepareValue, type SqliteRow } from "../database/statements.js";
import {
  CONVERSATION_PAGE,
  type ScopeRow,
  type SharedRow,
  type Snapshot,
  WITH_TURNS,
} from "../journal/journal-database.js";
import { type JournalRow, KEY_COLUMNS, type KeyRow, numberOf, ROW_COLUMNS } from "./journal-rows.js";

/** A row of `users` in which a scope is stored. */
export interface NamedScope extends ScopeKey {
  readonly scopeId: number;
  readonly createdAt: number;
}

interface OfNumber {
  readonly scopeId: number;
  readonly n: number;
}

/** A response as SQLite gives it. */
type StoredResponseRow = Omit<SqliteRow<typeof responses>, "scopeId" | "tenant" | "used">;

const SCOPE_COLUMNS = "scope_id as scopeId, tenant, user_id as userId, agent_id as agentId, created_at as createdAt";
const RESPONSE_COLUMNS = "id, request_id as requestId, held, sent_messages as sentMessages, sent, output";

export function readScopeRow(row: NamedScope): ScopeRow {
  return { scopeId: row.scopeId, scope: readScope(row), createdAt: row.createdAt };
}

/** The statements that read a journal; `counts` counts requests that were composed, and every turn. */
// The return type is the list of statements; writing it out would repeat it.
export function prepareReads(sqlite: Database.Database) {
  const composed = numberOf("composed");
  return {
    version: prepare<ScopeKey, StoredVersion>(
      sqlite,
      `select scopes.scope_id as scopeId, coalesce(n, 0) as commits, coalesce(sum, 0) as sum
       from scopes left join journal on journal.scope_id = scopes.scope_id
       where tenant = @tenant and user_id = @userId and agent_id = @agentId order by n desc limit 1`,
    ),
    scopesOf: prepare<{ readonly tenant: string; readonly userId: string }, NamedScope>(
      sqlite,
      `select ${SCOPE_COLUMNS} from scopes where tenant = @tenant and user_id = @userId order by scope_id`,
    ),
    scopeById: prepare<number, NamedScope>(sqlite, `select ${SCOPE_COLUMNS} from scopes where scope_id = ?`),
    forgotten: prepareValue<{ readonly tenant: string; readonly userId: string }, string>(
      sqlite,
      "select memory_id from forgotten_memories where tenant = @tenant and user_id = @userId",
    ),
    record: prepare<number, JournalRow>(sqlite, `select ${ROW_COLUMNS} from journal where seq = ?`),
    snapshot: prepare<number, Snapshot & { readonly sum: number }>(
      sqlite,
      "select n, sum, data from snapshots where scope_id = ?",
    ),
    behind: prepare<OfNumber, JournalRow>(
      sqlite,
      `select ${ROW_COLUMNS} from journal where scope_id = @scopeId and n > @n and changes is not null order by n`,
    ),
    newestAt: prepareValue<number, number>(
      sqlite,
      `select at from journal where scope_id = ? and kind = ${composed} order by n desc limit 1`,
    ),
    conversation: prepare<{ readonly scopeId: number; readonly conversation: number }, JournalRow>(
      sqlite,
      `select ${ROW_COLUMNS} from journal where scope_id = @scopeId and conversation = @conversation
         and kind in (${WITH_TURNS.map(numberOf).join(", ")}) order by n desc limit ${CONVERSATION_PAGE}`,
    ),
    bounds: prepare<{ readonly scopeId: number }, { readonly first: number | null; readonly last: number | null }>(
      sqlite,
      `select (select min(n) from journal where scope_id = @scopeId) as first,
         (select max(n) from journal where scope_id = @scopeId) as last`,
    ),
    /** The first record from a number on. */
    from: prepare<OfNumber, { readonly n: number; readonly turn: number; readonly turns: number }>(
      sqlite,
      "select n, turn, turns from journal where scope_id = @scopeId and n >= @n order by n limit 1",
    ),
    keyOfNumber: prepare<OfNumber, KeyRow>(
      sqlite,
      `select ${KEY_COLUMNS} from journal where scope_id = @scopeId and n = @n`,
    ),
    requestsOfScope: prepare<{ readonly scopeId: number; readonly requestId: string }, KeyRow>(
      sqlite,
      `select ${KEY_COLUMNS} from journal where request_id = @requestId and scope_id = @scopeId`,
    ),
    requestsOfTenant: prepare<{ readonly tenant: string; readonly requestId: string }, KeyRow>(
      sqlite,
      `select ${KEY_COLUMNS} from journal join scopes on scopes.scope_id = journal.scope_id
       where journal.request_id = @requestId and scopes.tenant = @tenant`,
    ),
    counts: prepare<number, { readonly requests: number; readonly turns: number; readonly conversations: number }>(
      sqlite,
      `select coalesce(sum(kind = ${composed}), 0) as requests, coalesce(sum(turns), 0) as turns,
         count(distinct iif(turns > 0, conversation, null)) as conversations
       from journal where scope_id = ?`,
    ),
    memoriesOf: prepareValue<number, Buffer>(sqlite, "select hashes from known_memories where scope_id = ?"),
    sharedDigests: prepareValue<number, SealedDigest>(sqlite, "select digest from instructions where scope_id = ?"),
    sharedRow: prepare<{ readonly scopeId: number; readonly digest: SealedDigest }, SharedRow>(
      sqlite,
      "select digest, messages from instructions where scope_id = @scopeId and digest = @digest",
    ),
    response: prepare<{ readonly scopeId: number; readonly id: SealedDigest }, StoredResponseRow>(
      sqlite,
      `select ${RESPONSE_COLUMNS} from responses where scope_id = @scopeId and id = @id`,
    ),
    responses: prepare<number, StoredResponseRow>(
      sqlite,
      `select ${RESPONSE_COLUMNS} from responses where scope_id = ? order by used`,
    ),
  };
}
