import type Database from "better-sqlite3";
import type { CausedMiss, UsageCause } from "../../core/index.js";
import type {
  GroupFilter,
  KeptNote,
  KeptUsage,
  UsageFilter,
  UsageGroup,
  UsagePage,
  UsageSpan,
  UsageView,
  WindowMisses,
  WindowSums,
} from "../api/usage-log.js";
import { KeptStatements } from "./kept-statements.js";
import { StepTotals } from "./step-totals.js";
import { keptRow, type NoteRow, noteOf, PROMPT_ROWS, type PromptRow } from "./usage-rows.js";
import { spanOf } from "./usage-span.js";
import { type GrowingSums, SUM_COLUMNS, SUM_NAMES } from "./usage-sums.js";

/** Most notes of a window. */
const MAX_NOTES = 200;
/** Most prompts that a page of a rare filter looks at. */
const MAX_SCANNED = 10_000;

interface GroupRow extends UsageGroup {
  readonly id: number;
}

/** Reads sums and prompts of one tenant. */
export class UsageReading {
  readonly #statements: KeptStatements;

  constructor(sqlite: Database.Database) {
    this.#statements = new KeptStatements(sqlite);
  }

  summary(view: UsageView): WindowSums {
    const span = spanOf(view);
    const tenant = this.tenantId(view.tenant);
    const groups = tenant === null ? [] : this.#groups(tenant, view);
    const steps = new StepTotals(groups);
    if (tenant !== null && groups.length > 0) {
      const where = [tenant, span.stepMs, span.from, span.to, idsOf(groups)];
      const sums = SUM_NAMES.map((name) => `${SUM_COLUMNS[name]} as ${name}`).join();
      const from =
        "where tenant = ? and step = ? and start >= ? and start < ? and grp in (select value from json_each(?))";
      type SumRow = GrowingSums & { readonly at: number; readonly grp: number };
      const rows = this.#all<SumRow>(`select start as at, grp, ${sums} from sums ${from}`, where);
      for (const row of rows) steps.add(row.at, row.grp, row);
      type TimeRow = { readonly at: number; readonly grp: number; readonly bin: number; readonly prompts: number };
      const times = `select start as at, grp, bin, prompts from times ${from}`;
      for (const { at: start, grp, bin, prompts } of this.#all<TimeRow>(times, where))
        steps.time(start, grp, bin, prompts);
    }
    return { ...span, ...steps.summed(), notes: this.#notes(tenant, view.tenant, span) };
  }

  misses(view: UsageView): WindowMisses {
    const span = spanOf(view);
    const tenant = this.tenantId(view.tenant);
    const groups = tenant === null ? [] : this.#groups(tenant, view);
    if (tenant === null || groups.length === 0) return { ...span, causes: [] };
    type CauseRow = CausedMiss & { readonly prompts: number; readonly money: number };
    const causes = this.#all<CauseRow>(
      `select cause, sum(prompts) as prompts, sum(tokens) as tokens, sum(money) as money from cause_sums
       where tenant = ? and step = ? and start >= ? and start < ? and grp in (select value from json_each(?))
       group by cause having sum(prompts) > 0`,
      [tenant, span.stepMs, span.from, span.to, idsOf(groups)],
    );
    return { ...span, causes };
  }

  /** See `UsageLog.prompts`. One index serves each filter; what it finds is compared with the rest, up to a bound. */
  prompts(filter: UsageFilter, before: number | null, limit: number): UsagePage {
    const tenant = this.tenantId(filter.tenant);
    const newest = tenant === null ? null : this.#idBefore(tenant, before);
    if (tenant === null || newest === null) return { rows: [], next: null };
    const isGroup = filter.model !== undefined || filter.engine !== undefined || filter.layout !== undefined;
    const groups = isGroup ? this.#groups(tenant, filter) : null;
    const found = new FoundIds(limit, MAX_SCANNED);
    if (filter.userId !== undefined) this.#ofUser(found, filter, tenant, groups, newest);
    else if (filter.cause !== undefined) this.#ofCause(found, filter.cause, tenant, groups, newest);
    else if (groups !== null) {
      // Each group's newest, of which the newest of all are taken.
      const sql = "select id from prompts where grp = ? and id <= ? order by id desc limit ?";
      const candidates = groups.flatMap(({ id }) => this.#all<{ id: number }>(sql, [id, newest, limit + 1]));
      for (const { id } of candidates.sort((a, b) => b.id - a.id)) if (!found.take(id)) break;
    } else {
      const sql = "select id from prompts where tenant = ? and number < ? order by number desc limit ?";
      const candidates = this.#all<{ id: number }>(sql, [tenant, before ?? Number.MAX_SAFE_INTEGER, limit + 1]);
      for (const { id } of candidates) if (!found.take(id)) break;
    }
    return { rows: this.rows(found.ids), next: found.next === null ? null : this.#numberOf(found.next) };
  }

  /** The tenant's newest prompt below a number; null: there is none. */
  #idBefore(tenant: number, before: number | null): number | null {
    const sql = "select id from prompts where tenant = ? and number < ? order by number desc limit 1";
    return this.#get<{ id: number }>(sql, [tenant, before ?? Number.MAX_SAFE_INTEGER])?.id ?? null;
  }

  #numberOf(id: number): number | null {
    return this.#get<{ number: number }>("select number from prompts where id = ?", [id])?.number ?? null;
  }

  /** Prompts by their ids, newest first. */
  rows(ids: readonly number[]): KeptUsage[] {
    const rows = this.#all<PromptRow>(
      `${PROMPT_ROWS} where p.id in (select value from json_each(?)) order by p.id desc`,
      [JSON.stringify(ids)],
    );
    return rows.map(keptRow);
  }

  #ofUser(found: FoundIds, filter: UsageFilter, tenant: number, groups: readonly GroupRow[] | null, newest: number) {
    const { userId, agentId, conversationId, cause } = filter;
    const users = this.#all<{ id: number }>(
      "select id from users where tenant = ? and name = ? and (? is null or agent = ?)",
      [tenant, userId, agentOf(agentId), agentOf(agentId)],
    );
    const ranges = users.flatMap(({ id }) => {
      if (conversationId === undefined) return [{ column: "user", id }];
      const of = this.#get<{ id: number }>("select id from conversations where user = ? and name = ?", [
        id,
        conversationId,
      ]);
      return of === undefined ? [] : [{ column: "conversation", id: of.id }];
    });
    const others = groups === null ? "" : " and grp in (select value from json_each(@groups))";
    const caused = cause === undefined ? "" : " and (planned_cause = @cause or unserved_cause = @cause)";
    const wanted = { newest, groups: idsOf(groups ?? []), cause: cause ?? null };
    const all = ranges.flatMap(({ column, id }) =>
      this.#all<{ id: number; fits: number }>(
        `select id, (true${others}${caused}) as fits from prompts where ${column} = @id and id <= @newest
         order by id desc limit ${MAX_SCANNED}`,
        { ...wanted, id },
      ),
    );
    for (const { id, fits } of all.sort((a, b) => b.id - a.id)) if (!found.take(id, fits === 1)) break;
    found.ended(all.length >= MAX_SCANNED ? (all.at(-1)?.id ?? null) : null);
  }

  #ofCause(found: FoundIds, cause: UsageCause, tenant: number, groups: readonly GroupRow[] | null, newest: number) {
    const wanted = new Set(groups?.map(({ id }) => id));
    const scanned = this.#all<{ id: number; grp: number }>(
      `select c.prompt as id, p.grp from causes c cross join prompts p on p.id = c.prompt
       where c.tenant = ? and c.cause = ? and c.prompt <= ? order by c.prompt desc limit ?`,
      [tenant, cause, newest, groups === null ? found.limit + 1 : MAX_SCANNED],
    );
    for (const { id, grp } of scanned) if (!found.take(id, groups === null || wanted.has(grp))) break;
    found.ended(scanned.length >= MAX_SCANNED ? (scanned.at(-1)?.id ?? null) : null);
  }

  /** Null: nothing of it is kept. */
  tenantId(name: string): number | null {
    return this.#get<{ id: number }>("select id from tenants where name = ?", [name])?.id ?? null;
  }

  #groups(tenant: number, { model, engine, layout }: GroupFilter): GroupRow[] {
    const rows = this.#all<GroupRow>("select id, model, engine, layout from groups where tenant = ?", [tenant]);
    return rows.filter(
      (row) =>
        (model ?? row.model) === row.model &&
        (engine ?? row.engine) === row.engine &&
        (layout ?? row.layout) === row.layout,
    );
  }

  #notes(tenant: number | null, name: string, { from, to }: UsageSpan): KeptNote[] {
    const sql = `select number, at, kind, label, model from notes where tenant is ? and at >= ? and at < ? order by at desc limit ${MAX_NOTES}`;
    const own = tenant === null ? [] : this.#all<NoteRow>(sql, [tenant, from, to]).map((row) => noteOf(row, name));
    const shared = this.#all<NoteRow>(sql, [null, from, to]).map((row) => noteOf(row, null));
    return [...own, ...shared].sort((a, b) => a.at - b.at || a.number - b.number).slice(-MAX_NOTES);
  }

  #get<T>(sql: string, values: readonly unknown[]): T | undefined {
    return this.#statements.get<T>(sql, values);
  }

  #all<T>(sql: string, values: readonly unknown[] | object): T[] {
    return this.#statements.all<T>(sql, values);
  }
}

/** As rows have it; null: any. */
export function agentOf(agentId: UsageFilter["agentId"]): string | null {
  return agentId === undefined ? null : (agentId ?? "");
}

function idsOf(groups: readonly GroupRow[]): string {
  return JSON.stringify(groups.map(({ id }) => id));
}

/** The ids of a page, from candidates in descending order. */
class FoundIds {
  readonly ids: number[] = [];
  next: number | null = null;
  #scanned = 0;
  #last: number | null = null;

  constructor(
    readonly limit: number,
    private readonly most: number,
  ) {}

  /** False: the page is full, or enough was looked at. */
  take(id: number, fits = true): boolean {
    if (this.ids.length >= this.limit || this.#scanned >= this.most) {
      this.next = this.#last;
      return false;
    }
    this.#scanned++;
    this.#last = id;
    if (fits) this.ids.push(id);
    return true;
  }

  /** `last`: the last candidate, where there may be more of them; null: there are none. */
  ended(last: number | null): void {
    this.next ??= last;
  }
}
