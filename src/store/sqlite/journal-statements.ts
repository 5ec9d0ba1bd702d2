import type Database from "better-sqlite3";
import type { FirstTokenTime } from "../../core/index.js";
import type { StoredVersion } from "../api/store.js";
import type { SealedDigest } from "../database/digest-seal.js";
import type {
  forgottenMemories,
  instructions,
  journal,
  knownMemories,
  responses,
  snapshots,
} from "../database/schema.js";
import { prepare, prepareValue, readScope, type ScopeKey, type SqliteRow } from "../database/statements.js";
import { damagedRecord, sumOfRecord } from "../journal/damaged-record.js";
import {
  CONVERSATION_PAGE,
  type JournalRecord,
  RECORD_KINDS,
  type RecordKey,
  type RecordKind,
  type ScopeRow,
  type SharedRow,
  type Snapshot,
  WITH_TURNS,
} from "../journal/journal-database.js";

/** A row of `journal`. */
export type JournalRow = SqliteRow<typeof journal>;
/** A row's columns that it is found by. */
export type KeyRow = Omit<JournalRow, "sum" | "changes" | "said">;

export const KEY_COLUMNS = `journal.seq, journal.scope_id as scopeId, journal.n, journal.kind, journal.turn, journal.turns,
  journal.conversation, journal.request_id as requestId, journal.leaf, journal.at`;
const ROW_COLUMNS = `${KEY_COLUMNS}, journal.sum, journal.changes, journal.said`;

const LAST_TIME = "coalesce((select max(number) from first_token_times where engine = @engine), 0)";

const NUMBERS = new Map<RecordKind, number>(RECORD_KINDS.map((kind, number) => [kind, number]));

/** A kind's number in rows. */
export function numberOf(kind: RecordKind): number {
  return NUMBERS.get(kind) as number;
}

/** Throws for a number that no kind has. */
export function readKey(row: KeyRow): RecordKey {
  const kind = RECORD_KINDS[row.kind];
  if (kind === undefined) throw damagedRecord(row, `no record is of kind ${row.kind}`);
  return { ...row, kind };
}

/** Throws for a row that is not what was written. */
export function readRecord({ sum, changes, said, ...key }: JournalRow): JournalRecord {
  const record: JournalRecord = { ...readKey(key), changes, said };
  if (sumOfRecord(record, record) !== sum) throw damagedRecord(key, "its checksum is another's");
  return record;
}

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
    /** An engine's times are numbered from 1. */
    lastTime: prepareValue<string, number>(
      sqlite,
      "select number from first_token_times where engine = ? order by number desc limit 1",
    ),
    times: prepare<{ readonly engine: string; readonly count: number; readonly most: number }, FirstTokenTime>(
      sqlite,
      `select uncached_tokens as uncachedTokens, cached_tokens as cachedTokens, ms from first_token_times
       where engine = @engine and number <= @count and number > @count - @most order by number`,
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

type OfUser = Pick<ScopeKey, "tenant" | "userId">;
type ResponseOf = Pick<SqliteRow<typeof responses>, "scopeId" | "requestId">;

/** The statements that write a journal. */
// The return type is the list of statements; writing it out would repeat it.
export function prepareWrites(sqlite: Database.Database) {
  return { ...recordStatements(sqlite), ...scopeStatements(sqlite), ...responseStatements(sqlite) };
}

function recordStatements(sqlite: Database.Database) {
  return {
    append: prepare<Omit<JournalRow, "seq">>(
      sqlite,
      `insert into journal (scope_id, n, kind, at, turn, turns, conversation, request_id, leaf, sum, changes, said)
       values (@scopeId, @n, @kind, @at, @turn, @turns, @conversation, @requestId, @leaf, @sum, @changes, @said)`,
    ),
    record: prepare<number, JournalRow>(sqlite, `select ${ROW_COLUMNS} from journal where seq = ?`),
    key: prepare<Pick<JournalRow, "seq" | "scopeId">, KeyRow>(
      sqlite,
      `select ${KEY_COLUMNS} from journal where seq = @seq and scope_id = @scopeId`,
    ),
    /** What is not named stays: when it was written, and which of the scope's records it is. */
    rewrite: prepare<Omit<JournalRow, "scopeId" | "n" | "at">>(
      sqlite,
      `update journal set kind = @kind, turn = @turn, turns = @turns, conversation = @conversation, request_id = @requestId, leaf = @leaf,
         sum = @sum, changes = @changes, said = @said
       where seq = @seq`,
    ),
    remove: prepare<number>(sqlite, "delete from journal where seq = ?"),
    hashes: prepareValue<number, Buffer>(sqlite, "select hashes from known_memories where seq = ?"),
    keepHashes: prepare<SqliteRow<typeof knownMemories>>(
      sqlite,
      `insert into known_memories (seq, scope_id, hashes) values (@seq, @scopeId, @hashes)
       on conflict (seq) do update set hashes = cast(hashes || excluded.hashes as blob)`,
    ),
    keepSnapshot: prepare<SqliteRow<typeof snapshots>>(
      sqlite,
      `insert into snapshots (scope_id, n, sum, data) values (@scopeId, @n, @sum, @data)
       on conflict (scope_id) do update set n = excluded.n, sum = excluded.sum, data = excluded.data`,
    ),
    keepShared: prepare<SqliteRow<typeof instructions>>(
      sqlite,
      "insert into instructions (scope_id, digest, messages) values (@scopeId, @digest, @messages) on conflict do nothing",
    ),
    replaceShared: prepare<SqliteRow<typeof instructions>>(
      sqlite,
      `insert into instructions (scope_id, digest, messages) values (@scopeId, @digest, @messages)
       on conflict (scope_id, digest) do update set messages = excluded.messages`,
    ),
    removeShared: prepare<{ readonly scopeId: number; readonly digest: SealedDigest }>(
      sqlite,
      "delete from instructions where scope_id = @scopeId and digest = @digest",
    ),
  };
}

function scopeStatements(sqlite: Database.Database) {
  return {
    scopeId: prepareValue<ScopeKey, number>(
      sqlite,
      "select scope_id from scopes where tenant = @tenant and user_id = @userId and agent_id = @agentId",
    ),
    /** A scope's name, and its last record. */
    claimed: prepare<number, ScopeKey & { readonly [column in "n" | "seq" | "sum"]: number | null }>(
      sqlite,
      `select tenant, user_id as userId, agent_id as agentId, n, seq, sum
       from scopes left join journal on journal.scope_id = scopes.scope_id
       where scopes.scope_id = ? order by n desc limit 1`,
    ),
    /** Gives the new scope's number; nothing where there is one of this name. */
    addScope: prepareValue<ScopeKey & { readonly createdAt: number }, number>(
      sqlite,
      `insert into scopes (tenant, user_id, agent_id, created_at) values (@tenant, @userId, @agentId, @createdAt)
         on conflict do nothing returning scope_id`,
    ),
    removeScope: prepare<number>(sqlite, "delete from scopes where scope_id = ?"),
    removeScopes: prepare<OfUser>(sqlite, "delete from scopes where tenant = @tenant and user_id = @userId"),
    forget: prepare<SqliteRow<typeof forgottenMemories>>(
      sqlite,
      `insert into forgotten_memories (tenant, user_id, memory_id) values (@tenant, @userId, @memoryId)
       on conflict do nothing`,
    ),
    removeForgotten: prepare<OfUser>(
      sqlite,
      "delete from forgotten_memories where tenant = @tenant and user_id = @userId",
    ),
    /** Everything that a user's scopes say. */
    bodiesOfUser: prepareValue<OfUser, string>(
      sqlite,
      `with own as (select scope_id from scopes where tenant = @tenant and user_id = @userId)
         select data from snapshots where scope_id in own
         union all select changes from journal where scope_id in own and changes is not null
         union all select said from journal where scope_id in own and said is not null
         union all select messages from instructions where scope_id in own
         union all select output from responses where scope_id in own`,
    ),
  };
}

function responseStatements(sqlite: Database.Database) {
  const composed = numberOf("composed");
  return {
    keepTime: prepare<FirstTokenTime & { readonly engine: string }>(
      sqlite,
      `insert into first_token_times (engine, number, uncached_tokens, cached_tokens, ms)
       values (@engine, ${LAST_TIME} + 1, @uncachedTokens, @cachedTokens, @ms)`,
    ),
    dropTimes: prepare<{ readonly engine: string; readonly most: number }>(
      sqlite,
      `delete from first_token_times where engine = @engine and number <= ${LAST_TIME} - @most`,
    ),
    nextUse: prepareValue<string, number>(sqlite, "select coalesce(max(used), 0) + 1 from responses where tenant = ?"),
    /** The request may be gone by now: withdrawn, expired or forgotten. */
    keepResponse: prepare<SqliteRow<typeof responses>>(
      sqlite,
      `insert into responses (scope_id, id, tenant, used, request_id, held, sent_messages, sent, output)
       select @scopeId, @id, @tenant, @used, @requestId, @held, @sentMessages, @sent, @output
       where exists (select 1 from journal where request_id = @requestId and scope_id = @scopeId and kind = ${composed})
       on conflict (scope_id, id) do update set used = excluded.used, request_id = excluded.request_id,
         held = excluded.held, sent_messages = excluded.sent_messages, sent = excluded.sent, output = excluded.output`,
    ),
    useResponse: prepare<Pick<SqliteRow<typeof responses>, "scopeId" | "id" | "used">>(
      sqlite,
      "update responses set used = @used where scope_id = @scopeId and id = @id",
    ),
    removeOldestResponses: prepare<{ readonly tenant: string; readonly most: number }>(
      sqlite,
      `delete from responses where tenant = @tenant and used <=
         (select used from responses where tenant = @tenant order by used desc limit 1 offset @most)`,
    ),
    outputs: prepareValue<number, string>(sqlite, "select output from responses where scope_id = ?"),
    removeResponses: prepare<number>(sqlite, "delete from responses where scope_id = ?"),
    /** Those of a request of which no record is left. */
    removeResponsesOf: prepare<ResponseOf>(
      sqlite,
      `delete from responses where request_id = @requestId and scope_id = @scopeId and not exists
         (select 1 from journal where request_id = @requestId and scope_id = @scopeId and kind = ${composed})`,
    ),
  };
}
