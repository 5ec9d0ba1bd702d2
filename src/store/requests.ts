import type { NodeId, RequestId, Scope, SpokenTurn, StoredPrompt, Turn, TurnId } from "../core/index.js";
import type { Database, SqlValue, Statement } from "./database.js";
import { decodeAnswer, decodedJson, encodeAnswer } from "./rows.js";
import type {
  AnsweredRequest,
  ComposeRecord,
  ContinuedPrompt,
  EngineReport,
  LiveRequest,
  ServedRequest,
  StoredAnswer,
} from "./store.js";
import { TurnReading } from "./turns.js";

type Reading = Pick<Database, "read" | "isAmong">;

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

const COLUMNS = `r.id, r.turn_id as "turnId", r.at, r.digest, r.leaf, r.answer, r.report, r.evicted`;

/** How many of a scope's last requests are searched for reports and open requests. */
const LOOKED_AT = 32;
/** Most prompts that are looked at for the one before one. */
const MOST_LOOKED_AT = 200;

/** Stores a compose's request. */
export function requestStatement(scopeId: number, { composition, request, at }: ComposeRecord): Statement {
  const text = `insert into requests (scope_id, id, turn_id, at, digest, leaf, answer) values ($1, $2, $3, $4, $5, $6, $7)`;
  const { turn, leaf } = composition;
  return { text, values: [scopeId, request.id, turn.id, at, request.body, leaf, encodeAnswer(request.answer)] };
}

/** Stores what an engine reported. */
export function reportStatement(scopeId: number, turn: TurnId, report: EngineReport): Statement {
  const text = "update requests set report = $3 where scope_id = $1 and turn_id = $2";
  return { text, values: [scopeId, turn, JSON.stringify(report)] };
}

export function evictionStatement(scopeId: number, id: RequestId): Statement {
  return { text: "update requests set evicted = 1 where id = $2 and scope_id = $1", values: [scopeId, id] };
}

/** Reads requests of one scope. */
export class RequestReading {
  constructor(
    private readonly database: Reading,
    private readonly scopeId: number,
  ) {}

  /** See `Store.findRequest`. */
  async answered(id: RequestId): Promise<AnsweredRequest | null> {
    const row = await this.#named(id);
    if (row === null) return null;
    const reading = new TurnReading(this.database, this.scopeId);
    const own = await reading.turn(row.turnId);
    const path = own && (await reading.pathTo(own));
    const [said, head] = await Promise.all([path && reading.said(path), own && reading.head(own)]);
    if (!said || !head) return null;
    return { body: row.digest, answer: decodeAnswer(row.answer), head, turns: said };
  }

  /** See `Store.findServed`. */
  async served(id: RequestId): Promise<ServedRequest | null> {
    const row = await this.#named(id);
    return row && servedOf(row);
  }

  /** See `Store.findWorker`. */
  async workerOf(turn: TurnId): Promise<string | null> {
    const [row] = await this.#rows("r.turn_id = $2", [turn]);
    return row === undefined ? null : (decodeAnswer(row.answer).worker ?? null);
  }

  /** See `Store.findReportedBefore`. */
  async reportedBefore(turn: TurnId): Promise<ServedRequest | null> {
    const rows = await this.#rows("r.turn_id < $2", [turn], LOOKED_AT);
    const reported = rows.find(({ report }) => reportOf(report)?.cachedTokens !== undefined);
    return reported === undefined ? null : servedOf(reported);
  }

  /** See `Store.underWaySince`. */
  async underWaySince(since: number): Promise<number | null> {
    const text = `select r.at, r.evicted, r.report from requests r where r.scope_id = $1 order by r.turn_id desc limit ${LOOKED_AT}`;
    const rows = await this.database.read<Pick<RequestRow, "at" | "evicted" | "report">>(text, [this.scopeId]);
    const later = rows.filter(({ at }) => at > since);
    if (later.length === LOOKED_AT) return since;
    return later.findLast(({ report, evicted }) => report === null && evicted === 0)?.at ?? null;
  }

  /** See `Store.countServedSince`. */
  async servedSince(leaf: NodeId, turn: TurnId, most: number): Promise<number> {
    const text = `select count(*) as count from (select 1 as one from requests r
      where r.scope_id = $1 and r.turn_id > $2 and r.leaf = $3 and r.evicted = 0 limit $4) as served`;
    const [row] = await this.database.read<{ count: number }>(text, [this.scopeId, turn, leaf, most]);
    return row?.count ?? 0;
  }

  /** See `Store.liveRequests`. */
  live(limit: number): Promise<readonly { requestId: RequestId; leaf: NodeId }[]> {
    const text = `select r.id as "requestId", r.leaf from requests r
      where r.scope_id = $1 and r.evicted = 0 order by r.turn_id desc limit $2`;
    return this.database.read(text, [this.scopeId, limit]);
  }

  /** See `Store.findContinued`. */
  async continuedBy(id: RequestId): Promise<ContinuedPrompt | null> {
    const row = await this.#named(id);
    const reading = new TurnReading(this.database, this.scopeId);
    const own = row && (await reading.turn(row.turnId));
    const prompt = own && (await this.#promptOf(row, own, reading));
    if (!prompt) return null;
    const before = await this.#before(own, reading);
    return { prompt, continued: before && (await this.#promptOf(before.row, before.turn, reading)) };
  }

  /** The prompt before one: its parent's where that was sent, else the newest of its conversation, or of none. */
  async #before(own: Turn, reading: TurnReading): Promise<{ row: RequestRow; turn: Turn } | null> {
    const rows = own.parent === null ? [] : await this.#rows("r.turn_id = $2", [own.parent]);
    const earlier = rows.length > 0 ? rows : await this.#rows("r.turn_id < $2", [own.id], MOST_LOOKED_AT);
    for (const row of earlier) {
      const turn = await reading.turn(row.turnId);
      if (turn !== null && turn.conversationId === own.conversationId) return { row, turn };
    }
    return null;
  }

  async #promptOf(row: RequestRow, turn: Turn, reading: TurnReading): Promise<StoredPrompt | null> {
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

  async #named(id: RequestId): Promise<RequestRow | null> {
    const [row] = await this.#rows("r.id = $2", [id], 1);
    return row ?? null;
  }

  /** Newest first. */
  #rows(where: string, values: readonly SqlValue[], most = 1): Promise<RequestRow[]> {
    const text = `select ${COLUMNS} from requests r where r.scope_id = $1 and ${where} order by r.turn_id desc limit ${most}`;
    return this.database.read<RequestRow>(text, [this.scopeId, ...values]);
  }
}

function servedOf({ leaf, turnId, at, answer, evicted, report }: RequestRow): ServedRequest {
  const { plan, grounds }: StoredAnswer = decodeAnswer(answer);
  return { leaf, turn: turnId, at, plan, grounds, evicted: evicted !== 0, observed: reportOf(report) };
}

function reportOf(report: string | null): EngineReport | null {
  return report === null ? null : decodedJson<EngineReport>("a report", report);
}

interface LiveRow {
  readonly requestId: RequestId;
  readonly leaf: NodeId;
  readonly turn: TurnId;
  readonly userId: Scope["userId"];
  readonly agentId: string;
}

/** See `Store.findLiveRequests`. */
export async function findLiveRequests(
  { read, isAmong }: Reading,
  tenant: string,
  ids: readonly RequestId[],
): Promise<readonly LiveRequest[]> {
  const text = `select r.id as "requestId", r.leaf, r.turn_id as turn, s.user_id as "userId", s.agent_id as "agentId"
    from requests r join scopes s on s.id = r.scope_id
    where r.id ${isAmong("$1")} and r.evicted = 0 and s.tenant = $2`;
  const rows = await read<LiveRow>(text, [JSON.stringify(ids), tenant]);
  return rows.map(({ userId, agentId, ...live }) => {
    const scope = { tenant, userId, agentId: agentId === "" ? null : (agentId as Scope["agentId"]) };
    return { ...live, scope };
  });
}
