/*
 * usage/: the usage log, in a SQLite file of its own beside the store's, or in the schema `memprefix` on a PostgreSQL server, for any number
 * of processes that record into one log.
 * In: batches of prompts and engines' reports; queries of one tenant. Out: rows, sums, notes.
 * A prompt is one row; sums over time are grouped by SQL when they are requested. SQL and tables (`usage-tables.ts`) are the same in both
 * databases, but for a few words (`Dialect`).
 */

import { createHash } from "node:crypto";
import { reportedUsage, type UserId } from "../../core/index.js";
import type {
  KeptNote,
  KeptUsage,
  NewNote,
  UsageBounds,
  UsageEntry,
  UsageFilter,
  UsageKey,
  UsageLog,
  UsagePage,
  UsageView,
  WindowMisses,
  WindowSums,
} from "../api/usage-log.js";
import { OTHER_MODELS } from "../api/usage-log.js";
import { type Dialect, type NamedStatement, named } from "../database/sql.js";
import { DAY_MS, type GroupedSums, type KeptPrompt, SUMMED, spanOf, valued, windowSums } from "./usage-figures.js";
import { keptPrompt, type PromptRow, promptRow } from "./usage-rows.js";
import { type RowOf, type RunQuery, USAGE_TABLES, type UsageDatabase } from "./usage-tables.js";

/** Entries of one transaction: bounds for how long others wait for it, and for how long this process computes. */
const MOST_ENTRIES = 2_000;
/** Milliseconds between two removals of what is too old or too much. */
const SWEEP_MS = 60_000;
/** Milliseconds for which a deleted user is remembered: longer than any process keeps what it cannot record. */
const DELETED_MS = DAY_MS;
/** Longest name of a model. */
const MAX_MODEL = 200;
/** Most models that sums are given of; others are one. */
const MOST_MODELS = 50;
/** Most notes of a window. */
const MAX_NOTES = 200;

const COLUMNS = Object.keys(USAGE_TABLES.usage_prompts.columns);
/** What a prompt is found by. */
const KEY = { tenant: "text", user_id: "text", agent_id: "text", request_id: "text" } as const;
const IS_KEY = Object.keys(KEY)
  .map((name) => `p.${name} = k.${name}`)
  .join(" and ");

function statementsOf({ rows }: Dialect) {
  return named("usage", {
    // What is known of a batch.
    known: `select p.* from ${rows("$1", "k", KEY)} cross join usage_prompts p where ${IS_KEY}`,
    numbers: `select k.tenant, coalesce((select max(p.number) from usage_prompts p where p.tenant = k.tenant), 0) as number
      from ${rows("$1", "k", { tenant: "text" })}`,
    deleted: "select digest, at from usage_deleted_users",
    // What is written.
    remove: `delete from usage_prompts where (tenant, number)
      in (select r.tenant, r.number from ${rows("$1", "r", { tenant: "text", number: "bigint" })})`,
    write: `insert into usage_prompts as t (${COLUMNS.join()})
      select ${COLUMNS.join()} from ${rows("$1", "r", USAGE_TABLES.usage_prompts.columns)} where true
      on conflict (tenant, number) do update set ${COLUMNS.map((name) => `${name} = excluded.${name}`).join()}`,
    // What goes.
    dropAged: "delete from usage_prompts where at < $1",
    count: "select count(*) as count from usage_prompts",
    dropOldest: `delete from usage_prompts where (tenant, number)
      in (select tenant, number from usage_prompts order by at, number limit $1)`,
    dropNotes: "delete from usage_notes where at < $1",
    dropDeleted: "delete from usage_deleted_users where at < $1",
    // Of a user.
    markDeleted: `insert into usage_deleted_users as t (digest, at) values ($1, $2)
      on conflict (digest) do update set at = case when t.at > excluded.at then t.at else excluded.at end`,
    dropUser: "delete from usage_prompts where tenant = $1 and user_id = $2",
    ofUser: "select p.* from usage_prompts p where p.tenant = $1 and p.user_id = $2 order by p.number",
    prompt: `select p.* from usage_prompts p
      where p.tenant = $1 and p.user_id = $2 and p.agent_id = $3 and p.request_id = $4`,
    // Notes and marks.
    lastNote: "select coalesce(max(number), 0) as number from usage_notes where tenant = $1",
    addNote: "insert into usage_notes (tenant, number, at, kind, label, model) values ($1, $2, $3, $4, $5, $6)",
    boundNotes: "delete from usage_notes where tenant = $1 and number <= $2",
    notes: `select * from usage_notes where tenant in ($1, '') and at >= $2 and at < $3
      order by at desc, number desc limit ${MAX_NOTES}`,
    mark: "select text from usage_marks where name = $1",
    keepMark: `insert into usage_marks (name, text) values ($1, $2)
      on conflict (name) do update set text = excluded.text`,
  });
}

/** The columns that a filter names, with their values. */
function conditionsOf(filter: Omit<UsageFilter, "cause">): readonly (readonly [column: string, value: unknown])[] {
  const { tenant, userId, agentId, conversationId, model, engine, layout } = filter;
  const agent = agentId === undefined ? undefined : (agentId ?? "");
  const all = { tenant, user_id: userId, agent_id: agent, conversation_id: conversationId, model, engine, layout };
  return Object.entries(all).filter(([, value]) => value !== undefined);
}

/** A query's conditions, whose parameters are collected as they are named. */
class Where {
  readonly values: unknown[] = [];
  readonly #conditions: string[] = [];

  /** @param condition with `?` for the value */
  and(condition: string, value: unknown): this {
    this.#conditions.push(condition.replace("?", this.add(value)));
    return this;
  }

  /** The parameter of a value. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  get text(): string {
    return this.#conditions.join(" and ");
  }
}

function whereOf(filter: Omit<UsageFilter, "cause">): Where {
  return conditionsOf(filter).reduce((where, [column, value]) => where.and(`p.${column} = ?`, value), new Where());
}

function windowOf(view: UsageView): Where {
  const { from, to } = spanOf(view);
  const { window: _, now: __, ...filter } = view;
  return whereOf(filter).and("p.at >= ?", from).and("p.at < ?", to);
}

/** The usage log in a database. A batch is two round trips: what is stored of what it names, and each row that changes, once. */
export class DatabaseUsageLog implements UsageLog {
  readonly #statements: ReturnType<typeof statementsOf>;
  /** When what is too old or too much was last removed, and prompts recorded since. */
  #sweptAt = Number.NEGATIVE_INFINITY;
  #added = 0;

  constructor(
    private readonly database: UsageDatabase,
    private readonly bounds: UsageBounds,
  ) {
    this.#statements = statementsOf(database.dialect);
  }

  /** See `UsageLog.record`. */
  async record(batch: readonly UsageEntry[], now: number): Promise<void> {
    for (let from = 0; from < batch.length; from += MOST_ENTRIES) {
      const part = batch.slice(from, from + MOST_ENTRIES);
      await this.database.write((query) => this.#record(query, part));
    }
    this.#added += batch.length;
    const isDue = Math.abs(now - this.#sweptAt) >= SWEEP_MS || this.#added * 100 >= this.bounds.prompts;
    if (!isDue) return;
    await this.database.write((query) => this.#sweep(query, now));
    this.#sweptAt = now;
    this.#added = 0;
  }

  async summary(view: UsageView): Promise<WindowSums> {
    const span = spanOf(view);
    const where = windowOf(view);
    const step = where.add(span.stepMs);
    const sums = Object.entries(SUMMED).map(([name, sum]) => `cast(${sum} as double precision) as "${name}"`);
    // Names of models are clients' to choose.
    const shown = `select p.model from usage_prompts p where ${where.text} group by p.model
      order by sum(p.prompt_tokens) desc limit ${MOST_MODELS}`;
    const text = `select p.at - p.at % ${step} as at, case when p.model in (${shown}) then p.model else '${OTHER_MODELS}' end as model,
      p.engine, p.layout, p.apart, p.first_token_bin as bin, ${sums.join()}
      from usage_prompts p where ${where.text} group by 1, 2, 3, 4, 5, 6`;
    const [rows, notes] = await this.database.read((query) =>
      Promise.all([
        query<GroupedSums>({ text }, where.values),
        query<RowOf<"usage_notes">>(this.#statements.notes, [view.tenant, span.from, span.to]),
      ]),
    );
    return { ...span, ...windowSums(rows), notes: notes.map(noteOf).reverse() };
  }

  async misses(view: UsageView): Promise<WindowMisses> {
    const where = windowOf(view);
    const text = `select p.miss_cause as cause, count(*) as prompts, cast(sum(p.miss_tokens) as double precision) as tokens,
      sum(coalesce(p.missed_money, 0)) as money
      from usage_prompts p where ${where.text} and p.miss_cause is not null group by p.miss_cause`;
    const causes = await this.#all<WindowMisses["causes"][number]>({ text }, where.values);
    return { ...spanOf(view), causes };
  }

  /** See `UsageLog.prompts`. */
  async prompts({ cause, ...filter }: UsageFilter, before: number | null, limit: number): Promise<UsagePage> {
    const where = whereOf(filter);
    if (before !== null) where.and("p.number < ?", before);
    if (cause !== undefined) where.and("p.miss_cause = ?", cause);
    const text = `select p.* from usage_prompts p where ${where.text} order by p.number desc limit ${where.add(limit + 1)}`;
    const rows = await this.#all<PromptRow>({ text }, where.values);
    return {
      rows: rows.slice(0, limit).map(keptPrompt),
      next: rows.length > limit ? (rows[limit - 1]?.number ?? null) : null,
    };
  }

  async prompt({ tenant, userId, agentId, requestId }: UsageKey): Promise<KeptUsage | null> {
    const [row] = await this.#all<PromptRow>(this.#statements.prompt, [tenant, userId, agentId ?? "", requestId]);
    return row === undefined ? null : keptPrompt(row);
  }

  async exportUser(tenant: string, userId: UserId): Promise<readonly KeptUsage[]> {
    return (await this.#all<PromptRow>(this.#statements.ofUser, [tenant, userId])).map(keptPrompt);
  }

  /** See `UsageLog.deleteUser`. */
  async deleteUser(tenant: string, userId: UserId, now: number): Promise<void> {
    const { markDeleted, dropUser } = this.#statements;
    await this.database.write(async (query) => {
      void query(markDeleted, [digestOf(tenant, userId), now]);
      await query(dropUser, [tenant, userId]);
    });
    await this.database.erase();
  }

  async note(note: NewNote): Promise<KeptNote> {
    const { at, kind, label, model } = note;
    const { lastNote, addNote, boundNotes } = this.#statements;
    const tenant = note.tenant ?? "";
    return this.database.write(async (query) => {
      const [last] = await query<{ number: number }>(lastNote, [tenant]);
      const number = (last?.number ?? 0) + 1;
      void query(addNote, [tenant, number, at, kind, storable(label), model === null ? null : storable(model)]);
      void query(boundNotes, [tenant, number - this.bounds.notes]);
      return noteOf({ tenant, number, at, kind, label, model });
    });
  }

  /** See `UsageLog.replaceMark`. */
  replaceMark(name: string, text: string): Promise<string | null> {
    const { mark, keepMark } = this.#statements;
    return this.database.write(async (query) => {
      const [before] = await query<{ text: string }>(mark, [name]);
      void query(keepMark, [name, text]);
      return before?.text ?? null;
    });
  }

  close(): Promise<void> {
    return this.database.close();
  }

  async #record(query: RunQuery, batch: readonly UsageEntry[]): Promise<void> {
    const { known, numbers, deleted, remove, write } = this.#statements;
    const distinct = (rows: readonly object[]) => `[${[...new Set(rows.map((row) => JSON.stringify(row)))].join()}]`;
    const keys = batch.map((entry) => ({
      tenant: entry.tenant,
      user_id: entry.userId,
      agent_id: entry.agentId ?? "",
      request_id: entry.requestId,
    }));
    const tenants = batch.map(({ tenant }) => ({ tenant }));
    const [prompts, last, users] = await Promise.all([
      query<PromptRow>(known, [distinct(keys)]),
      query<{ tenant: string; number: number }>(numbers, [distinct(tenants)]),
      query<RowOf<"usage_deleted_users">>(deleted),
    ]);
    const changes = changesOf(batch, {
      prompts: prompts.map(keptPrompt),
      numbers: new Map(last.map(({ tenant, number }) => [tenant, number])),
      deleted: new Map(users.map(({ digest, at }) => [digest, at])),
    });
    // First: the request's id may be another row's from now on.
    if (changes.removed.length > 0)
      void query(remove, [JSON.stringify(changes.removed.map(({ tenant, number }) => ({ tenant, number })))]);
    if (changes.written.length > 0) void query(write, [JSON.stringify(changes.written.map(promptRow))]);
  }

  /** Sends what removes what is too old or too much. */
  async #sweep(query: RunQuery, now: number): Promise<void> {
    const { dropAged, count, dropOldest, dropNotes, dropDeleted } = this.#statements;
    const before = now - this.bounds.days * DAY_MS;
    void query(dropAged, [before]);
    void query(dropNotes, [before]);
    void query(dropDeleted, [now - DELETED_MS]);
    const [{ count: kept } = { count: 0 }] = await query<{ count: number }>(count);
    if (kept > this.bounds.prompts) void query(dropOldest, [kept - this.bounds.prompts]);
  }

  #all<R extends object>(statement: NamedStatement, values: readonly unknown[]): Promise<R[]> {
    return this.database.read((query) => query<R>(statement, values));
  }
}

/** What is stored of what a batch names. */
interface KnownUsage {
  readonly prompts: readonly KeptPrompt[];
  /** The last numbers of the tenants' prompts. */
  readonly numbers: Map<string, number>;
  /** When users were deleted, by {@link digestOf}. */
  readonly deleted: ReadonlyMap<string, number>;
}

/** What a batch changes: each row once. */
function changesOf(batch: readonly UsageEntry[], { prompts, numbers, deleted }: KnownUsage) {
  const keyOf = ({ tenant, userId, agentId, requestId }: UsageKey) =>
    JSON.stringify([tenant, userId, agentId, requestId]);
  const current = new Map(prompts.map((prompt) => [keyOf(prompt), prompt]));
  const removed = new Set<KeptPrompt>();
  const written = new Map<string, KeptPrompt>();
  const isStored = new Set(prompts.map(({ tenant, number }) => `${tenant} ${number}`));
  const set = (prompt: KeptPrompt) => {
    current.set(keyOf(prompt), prompt);
    written.set(keyOf(prompt), prompt);
  };
  const drop = (key: string) => {
    const prompt = current.get(key);
    if (prompt === undefined) return;
    current.delete(key);
    written.delete(key);
    if (isStored.has(`${prompt.tenant} ${prompt.number}`)) removed.add(prompt);
  };
  for (const entry of batch) {
    const key = keyOf(entry);
    const before = current.get(key);
    if (entry.kind === "withdrawn") drop(key);
    else if (entry.kind === "reported") {
      if (before === undefined) continue;
      const { facts, costs, model } = entry;
      const usage = reportedUsage(before.usage, facts);
      set({ ...before, ...(model === null ? {} : { model: modelOf(model) }), ...valued(usage, costs) });
    } else {
      const { kind: _, costs, usage, ...prompt } = entry;
      const deletedAt = deleted.size === 0 ? undefined : deleted.get(digestOf(prompt.tenant, prompt.userId));
      if (deletedAt !== undefined && prompt.at <= deletedAt) continue;
      // The same batch again: its outcome was not known.
      if (before?.at === prompt.at) continue;
      // The id of a request that was withdrawn or evicted may be used again.
      drop(key);
      const number = (numbers.get(prompt.tenant) ?? 0) + 1;
      numbers.set(prompt.tenant, number);
      set({ ...prompt, number, model: modelOf(prompt.model), ...valued(usage, costs) });
    }
  }
  return { removed: [...removed], written: [...written.values()] };
}

/** No name is kept of a deleted user. */
function digestOf(tenant: string, userId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, userId]))
    .digest("base64url");
}

function modelOf(named: string): string {
  return named.length > MAX_MODEL ? OTHER_MODELS : storable(named);
}

/** As PostgreSQL can store it: a client's word for its model is not checked otherwise. */
function storable(text: string): string {
  return text.replaceAll("\0", "\u{fffd}").toWellFormed();
}

/** Those of all tenants have negative numbers, so that no two that a tenant sees are alike. */
function noteOf({ tenant, number, at, kind, label, model }: RowOf<"usage_notes">): KeptNote {
  const isShared = tenant === "";
  return {
    tenant: isShared ? null : tenant,
    number: isShared ? -number : number,
    at,
    kind: kind as KeptNote["kind"],
    label,
    model,
  };
}
