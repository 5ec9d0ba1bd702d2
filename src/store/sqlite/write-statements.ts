import type Database from "better-sqlite3";
import type { SealedDigest } from "../database/digest-seal.js";
import type { instructions, knownMemories, snapshots } from "../database/journal-schema.js";
import type { forgottenMemories, responses } from "../database/schema.js";
import type { ScopeKey } from "../database/scope-key.js";
import { prepare, prepareValue, type SqliteRow } from "../database/statements.js";
import { type JournalRow, KEY_COLUMNS, type KeyRow, numberOf, ROW_COLUMNS } from "./journal-rows.js";

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
