import { createHash } from "node:crypto";
import type Database from "better-sqlite3";
import { type EngineModel, type PromptUsage, reportedUsage, type UserId } from "../../core/index.js";
import type { NewUsage, UsageBounds, UsageEntry, UsageKey, UsageReport } from "../api/usage-log.js";
import type { ChangedPrompts } from "./changed-prompts.js";
import { KeptStatements } from "./kept-statements.js";
import { UsageNames } from "./usage-names.js";
import {
  INSERT_PROMPT,
  keptRow,
  keyOf,
  PROMPT_OF,
  PROMPT_ROWS,
  type PromptRow,
  UPDATE_PROMPT,
  valuesOf,
} from "./usage-rows.js";
import { valued } from "./usage-sums.js";
import { HOUR_MS, MINUTE_MS, STEPS_MS, type TotalsBatch, UsageTotals } from "./usage-totals.js";

const DAY_MS = 24 * HOUR_MS;
/** Most prompts that one batch removes; more than are recorded in it, so that the bound is reached. */
const REMOVED_AT_ONCE = 4_000;
/** Milliseconds for which a deleted user is remembered: far longer than prompts wait to be recorded. */
const DELETED_MS = 10 * MINUTE_MS;

/** A row's numbers: the rows that it counts in. */
interface RowIds {
  readonly tenant: number;
  readonly user: number;
  readonly conversation: number | null;
  readonly group: number;
}

/** Writes batches; every call in a transaction of its own. */
export class UsageWriting {
  readonly #totals: UsageTotals;
  readonly #changes: ChangedPrompts;
  readonly #names: UsageNames;
  /** The numbers of tenants' last prompts, within a transaction, which stores them at its end. */
  readonly #lastNumbers = new Map<number, number>();
  readonly #statements: KeptStatements;
  /** Of the running transaction. */
  #sums: TotalsBatch;
  /** When sums past the bounds were last removed. */
  #sweptAt = 0;

  constructor(
    private readonly sqlite: Database.Database,
    private readonly bounds: UsageBounds,
    changes: ChangedPrompts,
  ) {
    this.#statements = new KeptStatements(sqlite);
    this.#changes = changes;
    this.#names = new UsageNames(sqlite, bounds);
    this.#totals = new UsageTotals(sqlite);
    this.#sums = this.#totals.batch();
  }

  /** Records a batch, and which prompts it changed. */
  record(batch: readonly UsageEntry[], now: number): void {
    this.#write(() => {
      const deleted = this.#deletedUsers();
      const changed = new Map<number, Set<number>>();
      for (const entry of batch) {
        if (entry.kind === "withdrawn") this.#withdraw(entry);
        else {
          const id = entry.kind === "reported" ? this.#report(entry) : this.#compose(entry, deleted);
          if (id === null) continue;
          const tenant = this.#names.tenantId(entry.tenant);
          const ids = changed.get(tenant) ?? new Set();
          changed.set(tenant, ids.add(id));
        }
      }
      this.#changes.keep(changed, now);
      this.#prune(now);
    });
  }

  /** Removes a user's rows, and remembers for a while that they are to be. */
  deleteUser(tenant: string, userId: UserId, now: number): void {
    this.#write(() => {
      this.#run("insert into deleted_users values (?, ?) on conflict do update set at = excluded.at", [
        digestOf(tenant, userId),
        now,
      ]);
      const users = this.#all<{ id: number }>(
        "select u.id from users u join tenants t on t.id = u.tenant where t.name = ? and u.name = ?",
        [tenant, userId],
      );
      for (const { id } of users) {
        for (const row of this.#all<PromptRow>(`${PROMPT_ROWS} where p.user = ?`, [id])) this.#removeRow(row);
        this.#run("delete from conversations where user = ?", [id]);
        this.#run("delete from users where id = ?", [id]);
      }
    });
    this.sqlite.pragma("wal_checkpoint(TRUNCATE)");
  }

  /** For a transaction of the caller's. */
  ownerOf(tenant: string): number {
    this.#names.forget();
    return this.#names.tenantId(tenant);
  }

  /** The tenant's next number of a note. Tenants count for themselves: another's numbers would tell how much it does. */
  nextNote(tenant: number): number {
    const sql = "update tenants set notes = notes + 1 where id = ? returning notes as number";
    return this.#get<{ number: number }>(sql, [tenant])?.number ?? 0;
  }

  /** The same of a prompt. */
  #nextPrompt(tenant: number): number {
    const last =
      this.#lastNumbers.get(tenant) ??
      this.#get<{ number: number }>("select prompts as number from tenants where id = ?", [tenant])?.number ??
      0;
    this.#lastNumbers.set(tenant, last + 1);
    return last + 1;
  }

  /** Work in a transaction, with the sums that it changes. */
  #write<T>(work: () => T): T {
    const write = this.sqlite.transaction(() => {
      this.#names.forget();
      this.#lastNumbers.clear();
      this.#sums = this.#totals.batch();
      const result = work();
      this.#sums.flush();
      for (const [tenant, last] of this.#lastNumbers)
        this.#run("update tenants set prompts = ? where id = ?", [last, tenant]);
      return result;
    });
    return write.immediate();
  }

  #compose(entry: NewUsage, deleted: ReadonlyMap<string, number>): number | null {
    if (deleted.size > 0 && entry.at <= (deleted.get(digestOf(entry.tenant, entry.userId)) ?? Number.NEGATIVE_INFINITY))
      return null;
    const tenant = this.#names.tenantId(entry.tenant);
    const user = this.#names.userId(tenant, entry);
    const conversation =
      entry.conversationId === null ? null : this.#names.conversationId(tenant, user, entry.conversationId);
    const ids = { tenant, user, conversation, group: this.#names.groupId(tenant, entry) };
    const value = valued(entry.usage, entry.costs);
    const { usage, epoch, requestId } = entry;
    const { promptTokens, expectedTokens, carriedTokens } = usage;
    const row = [
      ...[
        tenant,
        this.#nextPrompt(tenant),
        user,
        conversation,
        ids.group,
        this.#names.shapeId(entry),
        requestId,
        entry.at,
      ],
      ...[epoch?.began ?? null, epoch?.prompts ?? null, promptTokens, expectedTokens, carriedTokens],
      ...valuesOf(value),
    ];
    const id = this.#insertPrompt(row) ?? this.#replacePrompt(user, requestId, row);
    this.#countCauses(ids.tenant, id, value.usage, "add");
    this.#sums.add(ids, entry.at, value, 1, "kept");
    return id;
  }

  /** Null where there is one of this request already. */
  #insertPrompt(row: readonly unknown[]): number | null {
    const { changes, lastInsertRowid } = this.#statements.of(INSERT_PROMPT).run(row);
    return changes === 0 ? null : Number(lastInsertRowid);
  }

  /** The id of a request that was withdrawn or evicted may be used again. */
  #replacePrompt(user: number, request: string, row: readonly unknown[]): number {
    const old = this.#all<PromptRow>(`${PROMPT_ROWS} where p.user = ? and p.request = ?`, [user, request]);
    for (const before of old) this.#removeRow(before);
    const id = this.#insertPrompt(row);
    if (id === null) throw new Error("a prompt that was removed is still there");
    return id;
  }

  #report(entry: UsageReport): number | null {
    const row = this.#get<PromptRow>(PROMPT_OF, keyOf(entry));
    if (row === undefined) return null;
    const ids = idsOf(row);
    const before = keptRow(row);
    const value = valued(reportedWith(before.usage, entry), entry.costs);
    const group = entry.model === null ? ids.group : this.#names.groupId(ids.tenant, { ...before, model: entry.model });
    this.#run(UPDATE_PROMPT, [group, ...valuesOf(value), row.id]);
    this.#countCauses(ids.tenant, row.id, before.usage, "remove");
    this.#countCauses(ids.tenant, row.id, value.usage, "add");
    this.#sums.add(ids, row.at, before, -1, "kept");
    this.#sums.add({ ...ids, group }, row.at, value, 1, "kept");
    return row.id;
  }

  #withdraw(entry: UsageKey): void {
    const row = this.#get<PromptRow>(PROMPT_OF, keyOf(entry));
    if (row !== undefined) this.#removeRow(row, "kept");
  }

  /** Removes a prompt and what it adds to its user's and its conversation's sums; those over time stay where it is `gone`. */
  #removeRow(row: PromptRow, place: "kept" | "gone" = "gone"): void {
    const ids = idsOf(row);
    const kept = keptRow(row);
    this.#countCauses(ids.tenant, row.id, kept.usage, "remove");
    this.#run("delete from prompts where id = ?", [row.id]);
    this.#sums.add(ids, row.at, kept, -1, place);
  }

  #countCauses(tenant: number, id: number, { planned, unserved }: PromptUsage, how: "add" | "remove"): void {
    const sql =
      how === "add"
        ? "insert or ignore into causes values (?, ?, ?)"
        : "delete from causes where tenant = ? and cause = ? and prompt = ?";
    for (const miss of [planned, unserved]) if (miss !== null) this.#run(sql, [tenant, miss.cause, id]);
  }

  #prune(now: number): void {
    const { days, prompts } = this.bounds;
    const before = now - days * DAY_MS;
    const count = this.#sums.countKept();
    const tooMany = Math.min(REMOVED_AT_ONCE, Math.max(0, count - prompts));
    const oldest = this.#all<PromptRow>(`${PROMPT_ROWS} where p.id in (select id from prompts order by id limit ?)`, [
      Math.max(tooMany, 100),
    ]);
    for (const [at, row] of oldest.entries()) if (at < tooMany || row.at < before) this.#removeRow(row);
    if (Math.abs(now - this.#sweptAt) >= MINUTE_MS) this.#sweep(now, before);
    this.#sums.dropEmpty();
  }

  /** Removes sums and notes that are too old. */
  #sweep(now: number, before: number): void {
    this.#sweptAt = now;
    for (const { id } of this.#all<{ id: number }>("select id from tenants", [])) {
      for (const table of ["sums", "times", "cause_sums"]) {
        const sql = `delete from ${table} where tenant = ? and step = ? and start < ?`;
        this.#run(sql, [id, STEPS_MS.hour, now - 2 * HOUR_MS]);
        this.#run(sql, [id, STEPS_MS.day, now - DAY_MS - HOUR_MS]);
        this.#run(sql, [id, STEPS_MS.month, before - DAY_MS]);
      }
    }
    this.#changes.drop(now);
    this.#run("delete from notes where at < ?", [before]);
    this.#run("delete from deleted_users where at < ?", [now - DELETED_MS]);
  }

  #deletedUsers(): ReadonlyMap<string, number> {
    const rows = this.#all<{ user: string; at: number }>("select user, at from deleted_users", []);
    return new Map(rows.map(({ user, at }) => [user, at]));
  }

  #get<T>(sql: string, values: readonly unknown[]): T | undefined {
    return this.#statements.get<T>(sql, values);
  }

  #all<T>(sql: string, values: readonly unknown[]): T[] {
    return this.#statements.all<T>(sql, values);
  }

  #run(sql: string, values: readonly unknown[] | object): void {
    this.#statements.run(sql, values);
  }
}

function idsOf(row: PromptRow): RowIds {
  return { tenant: row.tenant_id, user: row.user_id, conversation: row.conversation_id, group: row.group_id };
}

function reportedWith(usage: PromptUsage, { facts, costs }: { facts: UsageReport["facts"]; costs: EngineModel }) {
  return reportedUsage(usage, { ...facts, minimumPrefixTokens: costs.minimumPrefixTokens });
}

/** No name is kept of a deleted user. */
function digestOf(tenant: string, userId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, userId]))
    .digest("base64url");
}
