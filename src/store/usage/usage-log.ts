/*
 * usage/: the usage log, in a SQLite file of its own beside the store's, or in the schema `memprefix` on a PostgreSQL server, for any number
 * of processes that record into one log.
 * In: batches of prompts and engines' reports; queries of one tenant. Out: rows, sums, notes.
 * A batch is applied in memory (`accounting.ts`) to what is stored of what it names, and each row that changes is written once
 * (this file). Sums over time are kept per minute, and added up to the steps of longer windows when they are read, and for good
 * when they are old (`usage-figures.ts`). SQL and tables (`usage-tables.ts`) are the same in both databases, but for a few words
 * (`Dialect`).
 */

import { randomUUID } from "node:crypto";
import type { UserId } from "../../core/index.js";
import {
  type KeptNote,
  type NewNote,
  REUSE_NAMES,
  type UsageBounds,
  type UsageEntry,
  type UsageLog,
} from "../api/usage-log.js";
import { type Columns, type Dialect, type NamedStatement, named } from "../database/sql.js";
import { Accounting, digestOf, type GroupRow, type KnownUsage, type OwnerRow, storable } from "./accounting.js";
import { DAY_MS, FOLDS, HOUR_MS, REUSE_COLUMNS } from "./usage-figures.js";
import { UsageReading } from "./usage-reading.js";
import {
  numberedPrompt,
  PROMPT_COLUMNS,
  PROMPT_KEY,
  PROMPT_NAMES,
  type PromptRow,
  promptRow,
  type RowOf,
  type RunQuery,
  type TableName,
  USAGE_TABLES,
  type UsageDatabase,
  valuedPrompt,
} from "./usage-tables.js";

/** Entries of one transaction: bounds for how long others wait for it, and for how long this process computes. */
const MOST_ENTRIES = 2_000;
/** Most prompts that one transaction deletes; more than it records, so that the bound is reached. */
const MOST_DELETED = 5_000;
/** Milliseconds between two removals of what is too old. */
const SWEEP_MS = HOUR_MS / 4;
/** Milliseconds for which a batch that was recorded is remembered, and a deleted user: longer than any process keeps what it cannot record. */
const BATCH_MS = HOUR_MS;
const DELETED_MS = DAY_MS;

/** What changes of an owner, with its number: sums over its prompts … */
const REUSE: Columns = Object.fromEntries(
  Object.entries(USAGE_TABLES.usage_owners.columns).filter(([, type]) => type !== "text"),
);
/** … of which no prompt is kept yet. */
const NEW_OWNER = Object.fromEntries(Object.keys(REUSE).map((name) => [name, 0]));

function statementsOf({ rows, among }: Dialect) {
  const insertion = (table: TableName, then = "") => {
    const { columns } = USAGE_TABLES[table];
    const names = Object.keys(columns).join();
    return `insert into ${table} as t (${names}) select ${names} from ${rows("$1", "r", columns)} where true ${then}`;
  };
  const text = <K extends string>(...names: K[]) => Object.fromEntries(names.map((name) => [name, "text" as const]));
  const prompts = Object.keys(USAGE_TABLES.usage_prompts.columns);
  const reported = ["group_id", ...prompts.slice(prompts.indexOf("planned_cause"))];
  const deletion = (ids: string, given = "*") => `delete from usage_prompts where id ${among(ids)} returning ${given}`;
  const sums = Object.values(REUSE_COLUMNS);
  const groups = among("select id from usage_groups");
  const user = "select id from usage_owners where tenant = $1 and name = $2 and conversation = ''";
  return named("usage_write", {
    begin: "insert into usage_batches (id, at) values ($1, $2) on conflict do nothing returning id",
    // What is known.
    state: `select last_id as "lastId", kept from usage_state where id = 1`,
    tenants: `select t.tenant, t.prompts from ${rows("$1", "k", text("tenant"))} cross join usage_tenants t
      where t.tenant = k.tenant`,
    groups: `select g.id, g.tenant, g.model, g.engine, g.layout from ${rows("$1", "k", text("tenant"))}
      cross join usage_groups g where g.tenant = k.tenant`,
    owners: `select o.id, o.tenant, o.name, o.agent, o.conversation
      from ${rows("$1", "k", text("tenant", "name", "agent", "conversation"))} cross join usage_owners o
      where o.tenant = k.tenant and o.name = k.name and o.agent = k.agent and o.conversation = k.conversation`,
    prompts: `select ${PROMPT_COLUMNS} from ${rows("$1", "k", text("tenant", "name", "agent", "request"))}
      cross join usage_owners u cross join usage_prompts p ${PROMPT_NAMES}
      where u.tenant = k.tenant and u.name = k.name and u.agent = k.agent and u.conversation = ''
        and ${PROMPT_KEY} = cast(u.id as text) || ' ' || k.request and g.id = p.group_id`,
    deleted: "select digest, at from usage_deleted_users",
    // What is written.
    remove: `delete from usage_prompts where id ${among(`select r.id from ${rows("$1", "r", { id: "bigint" })}`)}`,
    addTenants: insertion("usage_tenants", "on conflict (tenant) do update set prompts = excluded.prompts"),
    addGroups: insertion("usage_groups"),
    addOwners: insertion("usage_owners"),
    changeOwners: `update usage_owners as t set ${sums.map((name) => `${name} = t.${name} + r.${name}`).join()},
      last_at = case when r.last_at > t.last_at then r.last_at else t.last_at end
      from ${rows("$1", "r", REUSE)} where t.id = r.id`,
    addPrompts: insertion(
      "usage_prompts",
      `on conflict (id) do update set ${reported.map((name) => `${name} = excluded.${name}`).join()}`,
    ),
    addSums: insertion(
      "usage_sums",
      "on conflict (group_id, start, measure) do update set value = t.value + excluded.value",
    ),
    advance: `insert into usage_state (id, last_id, kept) values (1, $1, $2)
      on conflict (id) do update set last_id = excluded.last_id, kept = excluded.kept`,
    // What goes.
    dropOldest: deletion(`select id from usage_prompts order by id limit $1`),
    dropAged: deletion(
      `select o.id from (select id, at from usage_prompts order by id limit ${MOST_DELETED}) o where o.at < $1`,
    ),
    dropOwners: `delete from usage_owners where id ${among(`select r.id from ${rows("$1", "r", { id: "bigint" })}`)}
      and prompts <= 0`,
    fold: `insert into usage_sums as t (group_id, start, measure, value)
      select s.group_id, s.start - s.start % $1, s.measure, sum(s.value) from usage_sums s
      where s.group_id ${groups} and s.start < $2 and s.start % $1 <> 0 group by 1, 2, 3
      on conflict (group_id, start, measure) do update set value = t.value + excluded.value`,
    dropFolded: `delete from usage_sums where group_id ${groups} and start < $2 and start % $1 <> 0`,
    dropSums: `delete from usage_sums where group_id ${groups} and start < $1`,
    dropNotes: "delete from usage_notes where at < $1",
    dropBatches: "delete from usage_batches where at < $1",
    dropDeleted: "delete from usage_deleted_users where at < $1",
    // Of a user.
    markDeleted: `insert into usage_deleted_users as t (digest, at) values ($1, $2)
      on conflict (digest) do update set at = case when t.at > excluded.at then t.at else excluded.at end`,
    dropUsers: deletion(`select p.id from usage_prompts p where p.user_id ${among(user)} limit ${MOST_DELETED}`, "id"),
    dropNames: "delete from usage_owners where tenant = $1 and name = $2",
    countKept: "update usage_state set kept = kept - $1 where id = 1",
    // Notes and marks.
    nextId: `insert into usage_state as t (id, last_id, kept) values (1, 1, 0)
      on conflict (id) do update set last_id = t.last_id + 1 returning last_id as id`,
    nextNote: `insert into usage_tenants as t (tenant, prompts, notes) values ($1, 0, 1)
      on conflict (tenant) do update set notes = t.notes + 1 returning notes as number`,
    addNote: `insert into usage_notes (id, tenant, number, at, kind, label, model) values ($1, $2, $3, $4, $5, $6, $7)`,
    boundNotes: `delete from usage_notes where id ${among(
      "select id from usage_notes where tenant = $1 order by at desc, id desc limit 1000000000 offset $2",
    )}`,
    mark: "select text from usage_marks where name = $1",
    keepMark: `insert into usage_marks (name, text) values ($1, $2)
      on conflict (name) do update set text = excluded.text`,
  });
}

/** The usage log in a database. A batch is two round trips: what is stored of what it names, and each row that changes, once. */
export class DatabaseUsageLog extends UsageReading implements UsageLog {
  readonly #statements: ReturnType<typeof statementsOf>;
  /** When what is too old was last removed. */
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(
    database: UsageDatabase,
    private readonly bounds: UsageBounds,
  ) {
    super(database);
    this.#statements = statementsOf(database.dialect);
  }

  /** See `UsageLog.record`. */
  async record(batch: readonly UsageEntry[], now: number, id = randomUUID() as string): Promise<void> {
    for (let from = 0; from === 0 || from < batch.length; from += MOST_ENTRIES) {
      const part = batch.slice(from, from + MOST_ENTRIES);
      await this.database.write((query) => this.#record(query, `${id} ${from}`, part, now));
    }
  }

  /** See `UsageLog.deleteUser`. In pieces: nothing else is recorded meanwhile. */
  async deleteUser(tenant: string, userId: UserId, now: number): Promise<void> {
    const { markDeleted, dropUsers, dropNames, countKept } = this.#statements;
    await this.database.write(async (query) => {
      await query(markDeleted, [digestOf(tenant, userId), now]);
    });
    for (let isLast = false; !isLast; ) {
      isLast = await this.database.write(async (query) => {
        const gone = await query(dropUsers, [tenant, userId]);
        void query(countKept, [gone.length]);
        if (gone.length < MOST_DELETED) void query(dropNames, [tenant, userId]);
        return gone.length < MOST_DELETED;
      });
    }
    await this.database.erase();
  }

  /** See `UsageLog.note`. */
  async note(note: NewNote): Promise<KeptNote> {
    const { at, kind, label, model } = note;
    const { nextId, nextNote, addNote, boundNotes } = this.#statements;
    const tenant = note.tenant ?? "";
    const number = await this.database.write(async (query) => {
      const [[last], [next]] = await Promise.all([
        query<{ id: number }>(nextId),
        query<{ number: number }>(nextNote, [tenant]),
      ]);
      // Those of all tenants are numbered downwards, so that no two that a tenant sees are alike.
      const own = (note.tenant === null ? -1 : 1) * (next?.number ?? 0);
      void query(addNote, [last?.id, tenant, own, at, kind, storable(label), model === null ? null : storable(model)]);
      void query(boundNotes, [tenant, this.bounds.notes]);
      return own;
    });
    return { number, ...note };
  }

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

  async #record(query: RunQuery, id: string, batch: readonly UsageEntry[], now: number): Promise<void> {
    const [begun, known] = await Promise.all([query(this.#statements.begin, [id, now]), this.#known(query, batch)]);
    // It was recorded before.
    if (begun.length === 0) return;
    const accounting = new Accounting(known, this.bounds);
    for (const entry of batch) accounting.take(entry);
    this.#write(query, accounting);
    await this.#drop(query, accounting, now);
  }

  async #known(query: RunQuery, batch: readonly UsageEntry[]): Promise<KnownUsage> {
    const named = batch.map((entry) => ({ tenant: entry.tenant, name: entry.userId, agent: entry.agentId ?? "" }));
    const requests = batch.map(({ requestId }, at) => ({ ...named[at], request: requestId }));
    const conversations = batch.map((entry, at) => {
      return { ...named[at], conversation: (entry.kind === "composed" && entry.conversationId) || "" };
    });
    const distinct = (all: readonly object[]) => [`[${[...new Set(all.map((one) => JSON.stringify(one)))].join()}]`];
    const tenants = distinct(batch.map(({ tenant }) => ({ tenant })));
    const { state, tenants: numbers, groups, owners, prompts, deleted } = this.#statements;
    const [[{ lastId, kept } = { lastId: 0, kept: 0 }], ofTenants, ofGroups, ofOwners, ofPrompts, ofDeleted] =
      await Promise.all([
        query<{ lastId: number; kept: number }>(state),
        query<{ tenant: string; prompts: number }>(numbers, tenants),
        query<GroupRow>(groups, tenants),
        query<OwnerRow>(owners, distinct([...named.map((user) => ({ ...user, conversation: "" })), ...conversations])),
        query<PromptRow>(prompts, distinct(requests)),
        query<RowOf<"usage_deleted_users">>(deleted),
      ]);
    return {
      lastId,
      kept,
      tenants: new Map(ofTenants.map(({ tenant, prompts: last }) => [tenant, last])),
      groups: ofGroups,
      owners: ofOwners,
      prompts: ofPrompts.map(numberedPrompt),
      deleted: new Map(ofDeleted.map(({ digest, at }) => [digest, at])),
    };
  }

  /** Sends what writes a batch: a few statements, however long it is. */
  #write(query: RunQuery, { removed, tenants, groups, owners, written, minutes }: Accounting): void {
    const send = (statement: NamedStatement, rows: readonly object[]) => {
      if (rows.length > 0) void query(statement, [JSON.stringify(rows)]);
    };
    const { remove, addTenants, addGroups, addOwners, addPrompts, addSums } = this.#statements;
    // First: the request's id may be another row's from now on.
    send(
      remove,
      [...removed].map((id) => ({ id })),
    );
    send(
      addTenants,
      [...tenants].map(([tenant, prompts]) => ({ tenant, prompts, notes: 0 })),
    );
    send(addGroups, groups);
    send(
      addOwners,
      owners.map((owner) => ({ ...NEW_OWNER, ...owner })),
    );
    send(
      addPrompts,
      [...written.values()].map((prompt) => promptRow(prompt)),
    );
    const sums = [...minutes.values()].flatMap(({ groupId, start, measures }) =>
      [...measures].flatMap(([measure, value]): RowOf<"usage_sums">[] =>
        value === 0 ? [] : [{ group_id: groupId, start, measure, value }],
      ),
    );
    send(addSums, sums);
  }

  /** Drops what is past the bounds, and writes what is kept of owners then. */
  async #drop(query: RunQuery, accounting: Accounting, now: number): Promise<void> {
    const { dropOldest, dropAged, changeOwners, dropOwners, advance } = this.#statements;
    const before = now - this.bounds.days * DAY_MS;
    const isSweepDue = Math.abs(now - this.#sweptAt) >= SWEEP_MS;
    const drop = async (statement: NamedStatement, value: number) => {
      const gone = await query<RowOf<"usage_prompts">>(statement, [value]);
      for (const row of gone)
        accounting.count({ userId: row.user_id, conversationId: row.conversation_id }, row.at, valuedPrompt(row), -1);
      return gone.length;
    };
    const aged = isSweepDue ? await drop(dropAged, before) : 0;
    const tooMany = accounting.kept - this.bounds.prompts;
    if (tooMany > 0) await drop(dropOldest, Math.min(MOST_DELETED, tooMany));
    const changes = [...accounting.reuse].map(([id, { sums, lastAt }]) => ({
      ...Object.fromEntries(REUSE_NAMES.map((name) => [REUSE_COLUMNS[name], sums.get(name) ?? 0])),
      ...{ id, prompts: sums.get("prompts") ?? 0, last_at: lastAt },
    }));
    if (changes.length > 0) void query(changeOwners, [JSON.stringify(changes)]);
    const emptied = changes.filter(({ prompts }) => prompts <= 0);
    if (emptied.length > 0) void query(dropOwners, [JSON.stringify(emptied)]);
    void query(advance, [accounting.lastId, accounting.kept]);
    if (!isSweepDue) return;
    this.#sweep(query, now, before);
    // Where all that were looked at went, more may be too old.
    if (aged < MOST_DELETED) this.#sweptAt = now;
  }

  /** Sends what adds up sums of some time ago to longer steps, and removes what is too old. */
  #sweep(query: RunQuery, now: number, before: number): void {
    const { fold, dropFolded, dropSums, dropNotes, dropBatches, dropDeleted } = this.#statements;
    for (const { stepMs, afterMs } of FOLDS) {
      void query(fold, [stepMs, now - afterMs]);
      void query(dropFolded, [stepMs, now - afterMs]);
    }
    void query(dropSums, [before - DAY_MS]);
    void query(dropNotes, [before]);
    void query(dropBatches, [now - BATCH_MS]);
    void query(dropDeleted, [now - DELETED_MS]);
  }
}
