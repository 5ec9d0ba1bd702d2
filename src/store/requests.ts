import type { EngineReport, NodeId, RequestId, SpokenTurn, StoredPrompt, Turn, TurnId, UserId } from "../core/index.js";
import { type Database, type SqlValue, type Statement, sql } from "./database.js";
import { agentIn, decodeAnswer, decodedJson, encodeAnswer } from "./rows.js";
import type { AnsweredRequest, ComposeRecord, LiveRequest, ServedRequest, Store, StoredAnswer } from "./store.js";
import { TurnReading } from "./turns.js";

interface RequestRow {
  readonly id: RequestId;
  readonly turnId: TurnId;
  readonly at: number;
  readonly digest: AnsweredRequest["body"];
  readonly leaf: NodeId;
  readonly answer: string;
  readonly report: string | null;
  readonly evicted: number;
}

type LiveRow = Omit<LiveRequest, "scope"> & { readonly userId: UserId; readonly agentId: string };

const COLUMNS = `r.id, r.turn_id as "turnId", r.at, r.digest, r.leaf, r.answer, r.report, r.evicted`;

/** Last requests of a scope that are searched for reports. */
const LOOKED_AT = 32;
/** Most prompts that are searched for the one before. */
const MOST_LOOKED_AT = 200;

export function requestStatement(scopeId: number, { composition, request, at }: ComposeRecord): Statement {
  const text = `insert into requests (scope_id, id, turn_id, at, digest, leaf, answer) values ($1, $2, $3, $4, $5, $6, $7)`;
  const { turn, leaf } = composition;
  return sql(text, scopeId, request.id, turn.id, at, request.body, leaf, encodeAnswer(request.answer));
}

/** The store's reads of requests, and their responses. */
export function requestsIn(database: Database) {
  const { read, isAmong } = database;

  /** Newest first. */
  function rowsWhere(scopeId: number, where: string, values: readonly SqlValue[], most = 1): Promise<RequestRow[]> {
    const text = `select ${COLUMNS} from requests r where r.scope_id = $1 and ${where} order by r.turn_id desc limit ${most}`;
    return read<RequestRow>(text, [scopeId, ...values]);
  }

  async function rowOf(scopeId: number, id: RequestId): Promise<RequestRow | null> {
    const [row] = await rowsWhere(scopeId, "r.id = $2", [id]);
    return row ?? null;
  }

  return {
    async findRequest(scopeId, id) {
      const row = await rowOf(scopeId, id);
      if (row === null) return null;
      const reading = new TurnReading(database, scopeId);
      const own = await reading.turn(row.turnId);
      const path = own && (await reading.pathTo(own));
      const [said, head] = await Promise.all([path && reading.said(path), own && reading.head(own)]);
      if (!said || !head) return null;
      return { body: row.digest, answer: decodeAnswer(row.answer), head, turns: said };
    },

    async findServed(scopeId, id) {
      const row = await rowOf(scopeId, id);
      return row && servedOf(row);
    },

    async findReportedBefore(scopeId, turn) {
      const rows = await rowsWhere(scopeId, "r.turn_id < $2", [turn], LOOKED_AT);
      const reported = rows.find(({ report }) => reportOf(report)?.cachedTokens !== undefined);
      return reported === undefined ? null : servedOf(reported);
    },

    async findWorker(scopeId, turn) {
      const [row] = await rowsWhere(scopeId, "r.turn_id = $2", [turn]);
      return row === undefined ? null : (decodeAnswer(row.answer).worker ?? null);
    },

    async findContinued(scopeId, id) {
      const row = await rowOf(scopeId, id);
      const reading = new TurnReading(database, scopeId);
      const own = row && (await reading.turn(row.turnId));
      const prompt = own && (await promptOf(row, own, reading));
      if (!prompt) return null;
      const sent = own.parent === null ? [] : await rowsWhere(scopeId, "r.turn_id = $2", [own.parent]);
      const earlier = sent.length > 0 ? sent : await rowsWhere(scopeId, "r.turn_id < $2", [own.id], MOST_LOOKED_AT);
      for (const before of earlier) {
        const turn = await reading.turn(before.turnId);
        if (turn !== null && turn.conversationId === own.conversationId)
          return { prompt, continued: await promptOf(before, turn, reading) };
      }
      return { prompt, continued: null };
    },

    async findLiveRequests(tenant, ids) {
      const text = `select r.id as "requestId", r.leaf, r.turn_id as turn, s.user_id as "userId", s.agent_id as "agentId"
        from requests r join scopes s on s.id = r.scope_id
        where r.id ${isAmong("$1")} and r.evicted = 0 and s.tenant = $2`;
      const rows = await read<LiveRow>(text, [JSON.stringify(ids), tenant]);
      return rows.map(({ userId, agentId, ...live }) => {
        return { ...live, scope: { tenant, userId, agentId: agentIn(agentId) } };
      });
    },

    async countServedSince(scopeId, leaf, turn, most) {
      const text = `select 1 as one from requests r
        where r.scope_id = $1 and r.turn_id > $2 and r.leaf = $3 and r.evicted = 0 limit $4`;
      return (await read(text, [scopeId, turn, leaf, most])).length;
    },

    async findResponse(scopeId, id) {
      const by = (column: string) => {
        const text = `select r.id from turns t join requests r on r.scope_id = t.scope_id and r.turn_id = t.id
          where t.scope_id = $1 and t.${column} = $2 order by t.id desc limit 1`;
        return read<{ id: RequestId }>(text, [scopeId, id]);
      };
      const found = await Promise.all([by("response_id"), by("engine_conversation")]);
      return found.flat()[0]?.id ?? null;
    },

    keepResponse(scopeId, requestId, id, engineConversation) {
      const text = `update turns set response_id = $3, engine_conversation = $4 where scope_id = $1
        and id = (select turn_id from requests where id = $2 and scope_id = $1)`;
      return database.write([sql(text, scopeId, requestId, id, engineConversation)]);
    },
  } satisfies Partial<Store>;
}

async function promptOf(row: RequestRow, turn: Turn, reading: TurnReading): Promise<StoredPrompt | null> {
  const path = await reading.pathTo(turn);
  const turns: readonly SpokenTurn[] | null = path && (await reading.said(path));
  if (turns === null) return null;
  const { plan, grounds } = decodeAnswer(row.answer);
  const { cachedTokens, promptTokens = null } = reportOf(row.report) ?? {};
  return {
    requestId: row.id,
    turns,
    head: await reading.head(turn),
    at: row.at,
    plan,
    besideTokens: grounds.besideTokens ?? 0,
    evicted: row.evicted !== 0,
    report: cachedTokens === undefined ? null : { cachedTokens, promptTokens },
  };
}

function servedOf({ leaf, turnId, at, answer, evicted, report }: RequestRow): ServedRequest {
  const { plan, grounds }: StoredAnswer = decodeAnswer(answer);
  return { leaf, turn: turnId, at, plan, grounds, evicted: evicted !== 0, observed: reportOf(report) };
}

function reportOf(report: string | null): EngineReport | null {
  return report === null ? null : decodedJson<EngineReport>("a report", report);
}
