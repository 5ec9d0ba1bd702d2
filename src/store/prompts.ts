import {
  type AgentId,
  type ConversationId,
  type EpochReason,
  type FirstTokenTime,
  type FixedRetention,
  type Miss,
  type MissCause,
  type RequestId,
  type Scope,
  type TurnId,
  timeBin,
  type UserId,
  uncachedTokens,
} from "../core/index.js";
import type { Database, SqlValue, Statement } from "./database.js";
import {
  OTHER_MODELS,
  type PromptFigures,
  type PromptFilter,
  type PromptGroup,
  type PromptKey,
  type PromptPage,
  type PromptTable,
  type PromptView,
  type StoredFigures,
  type WindowMisses,
  type WindowSpan,
  type WindowSums,
} from "./prompt-figures.js";
import { type GroupedSums, SUM_COLUMNS, spanOf, windowSums } from "./prompt-sums.js";
import type { ComposeRecord } from "./store.js";

/** Most models that sums are given of; others are one. */
const MOST_MODELS = 50;
/** Longest name of a model, in characters. */
const MAX_MODEL = 200;

/** Inserts the row of a compose whose prompt is counted. */
export function promptInsert(scopeId: number, record: ComposeRecord, scope: Scope): Statement {
  const { prompt, composition, request, at } = record;
  if (prompt === null) throw new Error("the prompt is not counted");
  const row: Readonly<Record<string, SqlValue>> = {
    scope_id: scopeId,
    turn_id: composition.turn.id,
    tenant: scope.tenant,
    user_id: scope.userId,
    agent_id: scope.agentId ?? "",
    conversation_id: composition.turn.conversationId,
    request_id: request.id,
    at,
    engine: prompt.engine,
    layout: prompt.layout,
    policy: prompt.policy,
    retention: prompt.retention,
    epoch_began: prompt.epoch?.began ?? null,
    epoch_prompts: prompt.epoch?.prompts ?? null,
    ...figureColumns(prompt),
  };
  const names = Object.keys(row);
  const text = `insert into prompts (${names.join()}) values (${names.map((_, at) => `$${at + 1}`).join()})`;
  return { text, values: Object.values(row) };
}

/** Updates the figures of a turn's prompt, where it has a row. */
export function promptUpdate(scopeId: number, turnId: TurnId, figures: PromptFigures): Statement {
  const columns = figureColumns(figures);
  const set = Object.keys(columns).map((name, at) => `${name} = $${at + 3}`);
  const text = `update prompts set ${set.join()} where scope_id = $1 and turn_id = $2`;
  return { text, values: [scopeId, turnId, ...Object.values(columns)] };
}

/** An engine's (`$1`) newest sample; 0 without any. */
const LAST_SAMPLE = "select coalesce(max(l.sample), 0) from prompts l where l.law = $1";

/**
 * Stores a first-token time of an engine in the row of the prompt that it is of, as the engine's next sample. A second time changes nothing.
 * Two processes may give one number to two samples.
 */
export function sampleStatement(engine: string, scopeId: number, turnId: TurnId, time: FirstTokenTime): Statement {
  const text = `update prompts set law = $1, sample = 1 + (${LAST_SAMPLE}), sample_uncached = $4, sample_cached = $5, sample_ms = $6
    where scope_id = $2 and turn_id = $3 and law is null`;
  return { text, values: [engine, scopeId, turnId, time.uncachedTokens, time.cachedTokens, time.ms] };
}

function figureColumns({ model, usage, apart, savedMoney, missedMoney }: PromptFigures) {
  const { planned, miss, report, firstTokenMs } = usage;
  return {
    model: storedModel(model),
    prompt_tokens: usage.promptTokens,
    expected_tokens: usage.expectedTokens,
    uncached_tokens: uncachedTokens(usage),
    carried_tokens: usage.carriedTokens,
    planned_cause: planned?.cause ?? null,
    planned_tokens: planned?.tokens ?? null,
    miss_cause: miss?.cause ?? null,
    miss_tokens: miss?.tokens ?? null,
    reported_prompt_tokens: report?.promptTokens ?? null,
    reported_cached_tokens: report?.cachedTokens ?? null,
    first_token_ms: firstTokenMs,
    first_token_bin: firstTokenMs === null ? null : timeBin(firstTokenMs),
    apart,
    saved_money: savedMoney,
    missed_money: missedMoney,
  } satisfies Readonly<Record<string, SqlValue>>;
}

/** A model's name as both databases can store it: a client's word for its model is not checked otherwise. */
function storedModel(name: string): string {
  return name.length > MAX_MODEL ? OTHER_MODELS : name.replaceAll("\0", "\u{fffd}").toWellFormed();
}

/** Whether a row is of a key (`$1` to `$4`): of its request's newest turn. */
const IS_KEYED = `(scope_id, turn_id) = (select r.scope_id, max(r.turn_id)
  from scopes s join requests r on r.id = $4 and r.scope_id = s.id
  where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 group by r.scope_id)`;

/** {@link PromptTable} in SQL. */
export class SqlPrompts implements PromptTable {
  constructor(private readonly database: Pick<Database, "read" | "readAside" | "write">) {}

  async summary(view: PromptView): Promise<WindowSums> {
    const span = spanOf(view);
    const where = windowOf(view, span);
    const step = where.add(span.stepMs);
    // Names of models are clients' to choose.
    const shown = `select p.model from prompts p where ${where.text} group by p.model
      order by sum(p.prompt_tokens) desc, p.model limit ${MOST_MODELS}`;
    const text = `select p.at - p.at % ${step} as at, case when p.model in (${shown}) then p.model else '${OTHER_MODELS}' end as model,
      p.engine, p.layout, p.first_token_bin as bin, ${SUM_COLUMNS}
      from prompts p where ${where.text} group by 1, 2, 3, 4, 5`;
    return { ...span, ...windowSums(await this.database.readAside<GroupedSums>(text, where.values)) };
  }

  async misses(view: PromptView): Promise<WindowMisses> {
    const span = spanOf(view);
    const where = windowOf(view, span);
    const text = `select p.miss_cause as cause, cast(count(*) as double precision) as prompts,
      cast(sum(p.miss_tokens) as double precision) as tokens, sum(coalesce(p.missed_money, 0)) as money
      from prompts p where ${where.text} and p.miss_cause is not null group by p.miss_cause`;
    return { ...span, causes: await this.database.readAside(text, where.values) };
  }

  async page({ cause, tenant, ...filter }: PromptFilter, before: number | null, limit: number): Promise<PromptPage> {
    // An expression keeps the tenant's index out: with it, all of the tenant's rows would be sorted for each page.
    const where = whereOf(filter).and("p.tenant || '' = ?", tenant);
    if (before !== null) where.and("p.id < ?", before);
    if (cause !== undefined) where.and("p.miss_cause = ?", cause);
    const text = `select p.* from prompts p where ${where.text} order by p.id desc limit ${where.add(limit + 1)}`;
    const rows = await this.database.readAside<PromptRow>(text, where.values);
    const next = rows.length > limit ? (rows[limit - 1]?.id ?? null) : null;
    return { rows: rows.slice(0, limit).map(storedFigures), next };
  }

  async prompt(key: PromptKey): Promise<StoredFigures | null> {
    const [row] = await this.database.read<PromptRow>(`select * from prompts where ${IS_KEYED}`, valuesOf(key));
    return row === undefined ? null : storedFigures(row);
  }

  async markRestarted(keys: readonly PromptKey[]): Promise<void> {
    const text = `update prompts set miss_cause = 'restarted' where ${IS_KEYED} and miss_cause = 'unknown'`;
    // One at a time: a transaction that locks rows of several users could wait for one that locks them in another order.
    for (const key of keys) await this.database.write([{ text, values: valuesOf(key) }]);
  }

  async sweep(before: number, most: number): Promise<void> {
    const oldestPast = "select id from prompts order by id desc limit 1 offset $1";
    await this.database.write([
      { text: "delete from prompts where at < $1", values: [before] },
      { text: `delete from prompts where id <= (${oldestPast})`, values: [most] },
    ]);
  }

  /** See `Store.countFirstTokenTimes`. */
  async countFirstTokenTimes(engine: string): Promise<number> {
    const [last] = await this.database.read<{ readonly count: number }>(`select (${LAST_SAMPLE}) as count`, [engine]);
    return last?.count ?? 0;
  }

  /** See `Store.firstTokenTimes`. */
  firstTokenTimes(engine: string, count: number, most: number): Promise<FirstTokenTime[]> {
    const text = `select sample_uncached as "uncachedTokens", sample_cached as "cachedTokens", sample_ms as ms
      from prompts where law = $1 and sample <= $2 and sample > $3 order by sample, id`;
    return this.database.read(text, [engine, count, count - most]);
  }
}

function valuesOf({ tenant, userId, agentId, requestId }: PromptKey): readonly SqlValue[] {
  return [tenant, userId, agentId ?? "", requestId];
}

/** A query's conditions, whose parameters are collected as they are named. */
class Where {
  readonly values: SqlValue[] = [];
  readonly #conditions: string[] = [];

  /** @param condition with `?` for the value */
  and(condition: string, value: SqlValue): this {
    this.#conditions.push(condition.replace("?", this.add(value)));
    return this;
  }

  /** The parameter of a value. */
  add(value: SqlValue): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  get text(): string {
    return this.#conditions.join(" and ");
  }
}

function whereOf(filter: Partial<Omit<PromptFilter, "cause">>): Where {
  const { tenant, userId, agentId, conversationId, model, engine, layout } = filter;
  const agent = agentId === undefined ? undefined : (agentId ?? "");
  const columns = { tenant, user_id: userId, agent_id: agent, conversation_id: conversationId, model, engine, layout };
  const where = new Where();
  for (const [column, value] of Object.entries(columns)) if (value !== undefined) where.and(`p.${column} = ?`, value);
  return where;
}

function windowOf({ window: _, now: __, ...filter }: PromptView, { from, to }: WindowSpan): Where {
  return whereOf(filter).and("p.at >= ?", from).and("p.at < ?", to);
}

/** A row, as both databases give it. */
interface PromptRow {
  readonly id: number;
  readonly tenant: string;
  readonly user_id: string;
  readonly agent_id: string;
  readonly conversation_id: string | null;
  readonly request_id: string;
  readonly at: number;
  readonly model: string;
  readonly engine: string;
  readonly layout: string;
  readonly policy: string;
  readonly retention: string;
  readonly epoch_began: string | null;
  readonly epoch_prompts: number | null;
  readonly prompt_tokens: number;
  readonly expected_tokens: number;
  readonly carried_tokens: number;
  readonly planned_cause: string | null;
  readonly planned_tokens: number | null;
  readonly miss_cause: string | null;
  readonly miss_tokens: number | null;
  readonly reported_prompt_tokens: number | null;
  readonly reported_cached_tokens: number | null;
  readonly first_token_ms: number | null;
  readonly apart: string | null;
  readonly saved_money: number | null;
  readonly missed_money: number | null;
}

/** The prompt of a row. */
function storedFigures(row: PromptRow): StoredFigures {
  const { reported_prompt_tokens: promptTokens, reported_cached_tokens: cachedTokens, epoch_prompts: prompts } = row;
  return {
    id: row.id,
    tenant: row.tenant,
    userId: row.user_id as UserId,
    agentId: row.agent_id === "" ? null : (row.agent_id as AgentId),
    requestId: row.request_id as RequestId,
    conversationId: row.conversation_id as ConversationId | null,
    at: row.at,
    model: row.model,
    engine: row.engine,
    layout: row.layout as PromptGroup["layout"],
    policy: row.policy,
    retention: row.retention as FixedRetention,
    epoch: prompts === null ? null : { began: row.epoch_began as EpochReason | null, prompts },
    usage: {
      promptTokens: row.prompt_tokens,
      expectedTokens: row.expected_tokens,
      carriedTokens: row.carried_tokens,
      planned: missOf(row.planned_cause, row.planned_tokens),
      miss: missOf(row.miss_cause, row.miss_tokens),
      report: cachedTokens === null ? null : { cachedTokens, promptTokens },
      firstTokenMs: row.first_token_ms,
    },
    apart: row.apart as PromptFigures["apart"],
    savedMoney: row.saved_money,
    missedMoney: row.missed_money,
  };
}

function missOf(cause: string | null, tokens: number | null): Miss | null {
  return cause === null || tokens === null ? null : { cause: cause as MissCause, tokens };
}
