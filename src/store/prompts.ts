import {
  type FirstTokenTime,
  type GroupedSums,
  type Miss,
  type MissCause,
  type NewPrompt,
  OTHER_MODELS,
  type PromptFigures,
  type PromptSums,
  type RequestId,
  type Scope,
  spanOf,
  type Turn,
  type TurnId,
  timeBin,
  type UserId,
  uncachedTokens,
  type WindowSpan,
  windowSums,
} from "../core/index.js";
import { type Database, type SqlValue, type Statement, sql } from "./database.js";
import type { PromptTable, PromptView, StoredFigures } from "./prompt-figures.js";
import { agentIn, scopeName, storable } from "./rows.js";
import type { ComposeRecord } from "./store.js";

/** Most models with their own sums; the others are summed as one. */
const MOST_MODELS = 50;
const MAX_MODEL = 200;
/** Rows of no user: calls that Mem0 makes of its own model. */
const NO_SCOPE = 0;

type PromptRow = ReturnType<typeof columnsOf> & ReturnType<typeof figureColumns> & { readonly id: number };

/** A prompt's turn, request and time. */
interface Place extends Pick<ComposeRecord, "at"> {
  readonly composition: { readonly turn: Pick<Turn, "id" | "conversationId"> };
  readonly request: Pick<ComposeRecord["request"], "id">;
}

function columnsOf(scopeId: number, { composition, request, at }: Place, prompt: NewPrompt, scope: Scope) {
  return {
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
    in_message_tokens: prompt.byHand?.inMessage ?? null,
    in_system_tokens: prompt.byHand?.inSystem ?? null,
  } satisfies Readonly<Record<string, SqlValue>>;
}

/** The columns that a report changes. */
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

export function promptInsert(scopeId: number, place: Place, prompt: NewPrompt | null, scope: Scope): Statement[] {
  if (prompt === null) return [];
  const [row, figures] = [columnsOf(scopeId, place, prompt, scope), figureColumns(prompt)];
  const names = [...Object.keys(row), ...Object.keys(figures)];
  const text = `insert into prompts (${names.join()}) values (${names.map((_, at) => `$${at + 1}`).join()})`;
  return [{ text, values: [...Object.values(row), ...Object.values(figures)] }];
}

/** Updates the figures of a turn's prompt, if it has a row. */
export function promptUpdate(scopeId: number, turnId: TurnId, figures: PromptFigures): Statement {
  const columns = figureColumns(figures);
  const set = Object.keys(columns).map((name, at) => `${name} = $${at + 3}`);
  const text = `update prompts set ${set.join()} where scope_id = $1 and turn_id = $2`;
  return { text, values: [scopeId, turnId, ...Object.values(columns)] };
}

/** An engine's (`$1`) newest sample; 0: none. */
const LAST_SAMPLE = "select coalesce(max(l.sample), 0) from prompts l where l.law = $1";

/** Clients name models, so names are limited here. */
function storedModel(name: string): string {
  return name.length > MAX_MODEL ? OTHER_MODELS : storable(name);
}

/** A prompt's tokens by its engine's count, where it gave one. */
const COUNTED = "coalesce(p.reported_prompt_tokens, p.prompt_tokens)";
const IS_REPORTED = "p.reported_cached_tokens is not null";
const sumWhere = (condition: string, value: string) => `sum(case when ${condition} then ${value} else 0 end)`;

const SUMS: Readonly<Record<keyof PromptSums, string>> = {
  prompts: "count(*)",
  promptTokens: "sum(p.prompt_tokens)",
  expectedTokens: "sum(p.expected_tokens)",
  uncachedTokens: "sum(p.uncached_tokens)",
  missedTokens: "sum(coalesce(p.miss_tokens, 0))",
  comparedTokens: sumWhere("p.in_message_tokens is not null", "p.uncached_tokens"),
  inMessageTokens: "sum(coalesce(p.in_message_tokens, 0))",
  inSystemTokens: "sum(coalesce(p.in_system_tokens, 0))",
  reportedPrompts: "count(p.reported_cached_tokens)",
  reportedPromptTokens: sumWhere(IS_REPORTED, COUNTED),
  reportedCachedTokens: sumWhere(IS_REPORTED, "p.reported_cached_tokens"),
  sharedPromptTokens: sumWhere("p.apart is null", "p.prompt_tokens"),
  sharedExpectedTokens: sumWhere("p.apart is null", "p.expected_tokens"),
  sharedReportedPromptTokens: sumWhere(`p.apart is null and ${IS_REPORTED}`, COUNTED),
  sharedReportedCachedTokens: sumWhere(`p.apart is null and ${IS_REPORTED}`, "p.reported_cached_tokens"),
  sharedReportedExpectedTokens: `round(${sumWhere(
    `p.apart is null and ${IS_REPORTED} and p.prompt_tokens > 0`,
    `cast(p.expected_tokens as double precision) * ${COUNTED} / p.prompt_tokens`,
  )})`,
  belowMinimumPrompts: sumWhere("p.apart = 'below_minimum'", "1"),
  belowMinimumTokens: sumWhere("p.apart = 'below_minimum'", "p.prompt_tokens"),
  expiredPrompts: sumWhere("p.apart = 'expired'", "1"),
  expiredTokens: sumWhere("p.apart = 'expired'", "p.prompt_tokens"),
  timedPrompts: "count(p.first_token_ms)",
  firstTokenMs: "sum(coalesce(p.first_token_ms, 0))",
  savedMoney: "sum(coalesce(p.saved_money, 0))",
  missedMoney: "sum(coalesce(p.missed_money, 0))",
};

const SUM_COLUMNS = Object.entries(SUMS)
  .map(([name, sum]) => `cast(${sum} as double precision) as "${name}"`)
  .join();

/** Whether a row belongs to a key (`$1` to `$4`): it is of its request's newest turn. */
const IS_KEYED = `(scope_id, turn_id) = (select r.scope_id, max(r.turn_id)
  from scopes s join requests r on r.id = $4 and r.scope_id = s.id
  where s.tenant = $1 and s.user_id = $2 and s.agent_id = $3 group by r.scope_id)`;

export function promptsIn(database: Pick<Database, "read" | "readAside" | "write">): PromptTable {
  const { read, readAside } = database;
  return {
    async summary(view) {
      const span = spanOf(view.window, view.now);
      const where = windowOf(view, span);
      // Clients choose the names of models.
      const shown = `select p.model from prompts p where ${where.text} group by p.model
        order by sum(p.prompt_tokens) desc, p.model limit ${MOST_MODELS}`;
      const text = `select p.at - p.at % ${span.stepMs} as at, case when p.model in (${shown}) then p.model else '${OTHER_MODELS}' end as model,
        p.first_token_bin as bin, case when p.layout = 'write' then 1 else 0 end as "isWrite", ${SUM_COLUMNS}
        from prompts p where ${where.text} group by 1, 2, 3, 4`;
      return { ...span, ...windowSums(await readAside<GroupedSums>(text, where.values)) };
    },

    async misses(view) {
      const span = spanOf(view.window, view.now);
      const where = windowOf(view, span);
      const text = `select p.miss_cause as cause, cast(count(*) as double precision) as prompts,
        cast(sum(p.miss_tokens) as double precision) as tokens, sum(coalesce(p.missed_money, 0)) as money
        from prompts p where ${where.text} and p.miss_cause is not null group by p.miss_cause`;
      return { ...span, causes: await readAside(text, where.values) };
    },

    async page({ tenant, model, userId, agentId, conversationId, cause }, before, limit) {
      const where = whereOf({
        // An expression keeps the tenant's index out: with it, all of the tenant's rows would be sorted for each page.
        "p.tenant || '' = ?": tenant,
        "p.layout <> ?": "write",
        "p.model = ?": model,
        "p.user_id = ?": userId,
        "p.agent_id = ?": agentId === null ? "" : agentId,
        "p.conversation_id = ?": conversationId,
        "p.miss_cause = ?": cause,
        "p.id < ?": before ?? undefined,
      });
      const text = `select p.* from prompts p where ${where.text} order by p.id desc limit $${where.values.length + 1}`;
      const rows = await readAside<PromptRow>(text, [...where.values, limit + 1]);
      const next = rows.length > limit ? (rows[limit - 1]?.id ?? null) : null;
      return { rows: rows.slice(0, limit).map(storedFigures), next };
    },

    async prompt(key) {
      const names = [...scopeName(key), key.requestId];
      const [row] = await read<PromptRow>(`select * from prompts where ${IS_KEYED}`, names);
      return row === undefined ? null : storedFigures(row);
    },

    keepWrite(tenant, number, at, figures) {
      const turn = { id: number as TurnId, conversationId: null };
      const place = { composition: { turn }, request: { id: "" as RequestId }, at };
      return database.write(promptInsert(NO_SCOPE, place, figures, { tenant, userId: "" as UserId, agentId: null }));
    },

    async sweep(before, most) {
      const oldestPast = "select id from prompts order by id desc limit 1 offset $1";
      await database.write([
        sql("delete from prompts where at < $1", before),
        sql(`delete from prompts where id <= (${oldestPast})`, most),
      ]);
    },

    async countFirstTokenTimes(engine) {
      const [last] = await read<{ readonly count: number }>(`select (${LAST_SAMPLE}) as count`, [engine]);
      return last?.count ?? 0;
    },

    firstTokenTimes(engine, count, most) {
      const text = `select sample_uncached as "uncachedTokens", sample_cached as "cachedTokens", sample_ms as ms
        from prompts where law = $1 and sample <= $2 and sample > $3 order by sample, id`;
      return read<FirstTokenTime>(text, [engine, count, count - most]);
    },

    // Repeating it changes nothing. Two processes may give two samples the same number.
    keepFirstTokenTime(engine, scopeId, turn, { uncachedTokens, cachedTokens, ms }) {
      const text = `update prompts set law = $1, sample = 1 + (${LAST_SAMPLE}), sample_uncached = $4, sample_cached = $5, sample_ms = $6
        where scope_id = $2 and turn_id = $3 and law is null`;
      return database.write([{ text, values: [engine, scopeId, turn, uncachedTokens, cachedTokens, ms] }]);
    },
  };
}

/** Joins a query's conditions, each with `?` for its value; leaves out those whose value is absent. */
function whereOf(conditions: Readonly<Record<string, SqlValue | undefined>>) {
  const given = Object.entries(conditions).filter((one): one is [string, SqlValue] => one[1] !== undefined);
  const text = given.map(([condition], at) => condition.replace("?", `$${at + 1}`)).join(" and ");
  return { text, values: given.map(([, value]) => value) };
}

function windowOf({ tenant, model }: PromptView, { from, to }: WindowSpan) {
  return whereOf({ "p.tenant = ?": tenant, "p.model = ?": model, "p.at >= ?": from, "p.at < ?": to });
}

function storedFigures(row: PromptRow): StoredFigures {
  const { reported_prompt_tokens: promptTokens, reported_cached_tokens: cachedTokens, epoch_prompts: prompts } = row;
  const { in_message_tokens: inMessage, in_system_tokens: inSystem } = row;
  return {
    id: row.id,
    tenant: row.tenant,
    userId: row.user_id,
    agentId: agentIn(row.agent_id),
    requestId: row.request_id,
    conversationId: row.conversation_id,
    at: row.at,
    model: row.model,
    engine: row.engine,
    layout: row.layout,
    policy: row.policy,
    retention: row.retention,
    epoch: prompts === null ? null : { began: row.epoch_began, prompts },
    byHand: inMessage === null || inSystem === null ? null : { inMessage, inSystem },
    usage: {
      promptTokens: row.prompt_tokens,
      expectedTokens: row.expected_tokens,
      carriedTokens: row.carried_tokens,
      planned: missOf(row.planned_cause, row.planned_tokens),
      miss: missOf(row.miss_cause, row.miss_tokens),
      report: cachedTokens === null ? null : { cachedTokens, promptTokens },
      firstTokenMs: row.first_token_ms,
    },
    apart: row.apart,
    savedMoney: row.saved_money,
    missedMoney: row.missed_money,
  };
}

function missOf(cause: MissCause | null, tokens: number | null): Miss | null {
  return cause === null || tokens === null ? null : { cause, tokens };
}
