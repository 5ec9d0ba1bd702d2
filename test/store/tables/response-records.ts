import type Database from "better-sqlite3";
import { z } from "zod";
import type { ChatMessage, Digest, RequestId } from "../../../src/core/index.js";
import type { StoredResponse } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import type { responses } from "../../../src/store/database/schema.js";
import type { SqliteRow } from "../../../src/store/database/statements.js";

type ResponseRow = SqliteRow<typeof responses>;
type Kept = Omit<ResponseRow, "used">;
type Named = Pick<ResponseRow, "scopeId" | "id">;

/** How often the oldest are removed: once in so many uses of a tenant. */
const USES_BETWEEN_REMOVALS = 64;

const messages = z.array(z.looseObject({ role: z.string() }));

/** Responses by their ids' digests. Writes run inside the caller's transaction. */
export class ResponseRecords {
  readonly #find: Database.Statement<[Named], ResponseRow>;
  readonly #nextUse: Database.Statement<[string], number>;
  readonly #keep: Database.Statement<[ResponseRow]>;
  readonly #use: Database.Statement<[Named & Pick<ResponseRow, "used">]>;
  readonly #removeOldest: Database.Statement<[{ readonly tenant: string; readonly most: number }]>;
  readonly #remove: Database.Statement<[number]>;

  constructor(private readonly database: Pick<OpenDatabase, "sqlite" | "digests">) {
    const { sqlite } = database;
    this.#find = sqlite.prepare(
      `select scope_id as scopeId, id, tenant, used, request_id as requestId, held, sent_messages as sentMessages, sent, output
       from responses where scope_id = @scopeId and id = @id`,
    );
    this.#nextUse = sqlite
      .prepare<[string], number>("select coalesce(max(used), 0) + 1 from responses where tenant = ?")
      .pluck();
    // The request may be gone by now: withdrawn, expired or forgotten.
    this.#keep = sqlite.prepare(
      `insert into responses (scope_id, id, tenant, used, request_id, held, sent_messages, sent, output)
       select @scopeId, @id, @tenant, @used, @requestId, @held, @sentMessages, @sent, @output
       where exists (select 1 from requests where request_id = @requestId and scope_id = @scopeId)
       on conflict (scope_id, id) do update set used = excluded.used, request_id = excluded.request_id,
         held = excluded.held, sent_messages = excluded.sent_messages, sent = excluded.sent, output = excluded.output`,
    );
    this.#use = sqlite.prepare("update responses set used = @used where scope_id = @scopeId and id = @id");
    this.#removeOldest = sqlite.prepare(
      `delete from responses where tenant = @tenant and used <=
         (select used from responses where tenant = @tenant order by used desc limit 1 offset @most)`,
    );
    this.#remove = sqlite.prepare("delete from responses where scope_id = ?");
  }

  /** See `Store.findResponse`. */
  find(scopeId: number, id: Digest): StoredResponse | null {
    const { digests } = this.database;
    const row = this.#find.get({ scopeId, id: digests.seal(id) });
    if (row === undefined) return null;
    return {
      requestId: row.requestId as RequestId,
      isHeld: row.held === 1,
      sent: { count: row.sentMessages, digest: digests.open(row.sent) },
      output: messages.parse(JSON.parse(row.output)) as readonly ChatMessage[],
    };
  }

  /** See `Store.keepResponse`. */
  keep(
    of: Pick<ResponseRow, "scopeId" | "tenant">,
    id: Digest,
    response: StoredResponse,
    continued: Digest | null,
    most: number,
  ): void {
    const { digests } = this.database;
    const used = this.#nextUse.get(of.tenant) ?? 1;
    if (continued !== null) this.#use.run({ ...of, id: digests.seal(continued), used });
    const { requestId, isHeld, sent, output } = response;
    const row: Kept = {
      ...of,
      id: digests.seal(id),
      requestId,
      held: isHeld ? 1 : 0,
      sentMessages: sent.count,
      sent: digests.seal(sent.digest),
      output: JSON.stringify(output),
    };
    this.#keep.run({ ...row, used });
    if (used % USES_BETWEEN_REMOVALS === 0) this.#removeOldest.run({ tenant: of.tenant, most });
  }

  /** Removes all of a scope's. */
  removeAll(scopeId: number): void {
    this.#remove.run(scopeId);
  }
}
