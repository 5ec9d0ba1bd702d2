import type Database from "better-sqlite3";
import { and, desc, eq, inArray } from "drizzle-orm";
import type { ChatMessage, NodeId, RequestId, Scope, Turn, TurnId } from "../../../src/core/index.js";
import type { AnsweredRequest, PromptHistory, ServedRequest } from "../../../src/store/api/store.js";
import type { OpenDatabase } from "../../../src/store/database/open-database.js";
import { scopes } from "../../../src/store/database/schema.js";
import { readScope } from "../../../src/store/database/scope-key.js";
import { readAnswer, readTurn } from "../../../src/store/upgrade/table-rows.js";
import { requests } from "../../../src/store/upgrade/table-schema.js";
import { headOf, turnsUpFrom } from "./conversation-history.js";
import { readPromptHistory } from "./prompt-history.js";
import { readServed } from "./rows.js";
import { inPieces, type Statements } from "./statements.js";
import type { StoredMessages } from "./stored-messages.js";

/** How many of a scope's last requests are searched for reports and open requests. */
const REQUESTS_LOOKED_AT = 32;

const LAST_REQUESTS =
  "select created_at as createdAt, observed is null and not evicted as isOpen from requests where scope_id = ? order by turn desc";

const NEWEST_REQUEST = "select created_at from requests where scope_id = ? order by turn desc limit 1";

/** Newest first: a node that is asked about was served a short while ago. */
const SERVED_SINCE = `select count(*) from (select 1 from requests
  where scope_id = @scopeId and turn > @turn and leaf = @leaf and not evicted order by turn desc limit @most)`;

interface ServedSince {
  readonly scopeId: number;
  readonly leaf: NodeId;
  readonly turn: TurnId;
  readonly most: number;
}

/** Stored requests. A `scopeId` of null: the scope was never stored, and has none. */
export class RequestRecords {
  /** Read row by row, as a compose mostly needs the first few. */
  readonly #lastRequests: Database.Statement<[number], { readonly createdAt: number; readonly isOpen: 0 | 1 }>;
  readonly #newestRequest: Database.Statement<[number], number>;
  readonly #servedSince: Database.Statement<[ServedSince], number>;

  constructor(
    private readonly database: OpenDatabase,
    private readonly statements: Statements,
    private readonly messages: StoredMessages,
  ) {
    this.#servedSince = database.sqlite.prepare<[ServedSince], number>(SERVED_SINCE).pluck();
    this.#newestRequest = database.sqlite.prepare<[number], number>(NEWEST_REQUEST).pluck();
    this.#lastRequests = database.sqlite.prepare(LAST_REQUESTS);
  }

  /** See `Store.findRequest`. */
  answered(scopeId: number | null, id: RequestId): AnsweredRequest | null {
    const row = scopeId === null ? undefined : this.statements.request.get({ scopeId, requestId: id });
    if (scopeId === null || row === undefined) return null;
    const { digests } = this.database;
    const turns: { turn: Turn; given: readonly ChatMessage[] }[] = [];
    const own = this.statements.turn.get({ scopeId, id: row.turn });
    for (const found of turnsUpFrom(this.statements, this.messages, scopeId, own)) {
      if (found?.given == null) return null;
      const { turn, given } = found;
      turns.push({ turn: readTurn(turn, this.messages.saidIn(turn.given), digests), given });
    }
    const instructions = own === undefined ? null : headOf(this.statements, this.messages, scopeId, own);
    if (instructions === null) return null;
    return {
      body: digests.open(row.body),
      answer: readAnswer(row.answer),
      head: instructions,
      turns: turns.reverse(),
    };
  }

  /** See `Store.findLiveRequests`. */
  live(tenant: string, ids: readonly RequestId[]) {
    const found: { scope: Scope; requestId: RequestId; leaf: NodeId; turn: TurnId }[] = [];
    inPieces(ids, (piece) => {
      const rows = this.database.orm
        .select({ scope: scopes, request: requests })
        .from(requests)
        .innerJoin(scopes, eq(requests.scopeId, scopes.scopeId))
        .where(and(inArray(requests.requestId, piece), eq(requests.evicted, false), eq(scopes.tenant, tenant)))
        .all();
      for (const { scope, request } of rows) {
        found.push({
          scope: readScope(scope),
          requestId: request.requestId as RequestId,
          leaf: request.leaf as NodeId,
          turn: request.turn as TurnId,
        });
      }
    });
    return found;
  }

  /** See `Store.liveRequests`. */
  newestLive(scopeId: number | null, limit: number) {
    return this.database.orm
      .select({ requestId: requests.requestId, leaf: requests.leaf })
      .from(requests)
      .where(and(eq(requests.scopeId, scopeId ?? -1), eq(requests.evicted, false)))
      .orderBy(desc(requests.turn))
      .limit(limit)
      .all()
      .map((row) => ({ requestId: row.requestId as RequestId, leaf: row.leaf as NodeId }));
  }

  /** See `Store.countServedSince`. */
  servedSince(scopeId: number | null, leaf: NodeId, turn: TurnId, most: number): number {
    return scopeId === null ? 0 : (this.#servedSince.get({ scopeId, leaf, turn, most }) ?? 0);
  }

  /** See `Store.findServed`. */
  served(scopeId: number | null, id: RequestId): ServedRequest | null {
    const row = scopeId === null ? undefined : this.statements.request.get({ scopeId, requestId: id });
    return row === undefined ? null : readServed(row);
  }

  /** See `Store.findWorker`. */
  workerOf(scopeId: number | null, turn: TurnId): string | null {
    if (scopeId === null) return null;
    const [row] = this.statements.requestsBefore.all({ scopeId, turn: turn + 1, limit: 1 });
    return row?.turn === turn ? (readAnswer(row.answer).worker ?? null) : null;
  }

  /** See `Store.findReportedBefore`. */
  reportedBefore(scopeId: number | null, turn: TurnId): ServedRequest | null {
    if (scopeId === null) return null;
    for (const row of this.statements.requestsBefore.all({ scopeId, turn, limit: REQUESTS_LOOKED_AT })) {
      if (row.observed === null) continue;
      const served = readServed(row);
      if (served.observed?.cachedTokens !== undefined) return served;
    }
    return null;
  }

  /** See `Store.underWaySince`. */
  underWaySince(scopeId: number | null, since: number): number | null {
    if (scopeId === null) return null;
    // Mostly none is: iterating takes several times as long as one row.
    const newest = this.#newestRequest.get(scopeId);
    if (newest === undefined || newest <= since) return null;
    let earliest: number | null = null;
    let looked = 0;
    for (const { createdAt, isOpen } of this.#lastRequests.iterate(scopeId)) {
      if (createdAt <= since) break;
      if (++looked === REQUESTS_LOOKED_AT) return since;
      if (isOpen === 1) earliest = createdAt;
    }
    return earliest;
  }

  /** See `Store.findPromptHistory`. */
  promptHistory(scopeId: number | null, id: RequestId): PromptHistory | null {
    return scopeId === null ? null : readPromptHistory(this.database, this.statements, this.messages, scopeId, id);
  }
}
