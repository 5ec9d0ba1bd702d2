/*
 * usage-postgres/: the usage log on a PostgreSQL server, for any number of processes that record into one log.
 * In: batches of prompts and engines' reports; queries of one tenant. Out: rows and sums in the schema `memstem`, beside the journal's.
 * Whoever writes holds one advisory lock: numbers grow, sums add up, and bounds hold, whichever instance records. A batch is two round
 * trips: what is stored of what it names is read (`batch-reading.ts`), the batch is applied to that in memory (`batch-changes.ts`), and each
 * row that changes is written once (`batch-writing.ts`). Reads take no lock.
 */

import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { UserId } from "../../core/index.js";
import { StoreUnavailableError } from "../api/store.js";
import {
  DEFAULT_USAGE_BOUNDS,
  type KeptNote,
  type NewNote,
  type UsageBounds,
  type UsageEntry,
  type UsageLog,
} from "../api/usage-log.js";
import { ask, Connections, type NamedStatement } from "../postgres/connections.js";
import { SCHEMA } from "../postgres/schema.js";
import { BatchChanges, digestOf, storable } from "./batch-changes.js";
import { readKnown } from "./batch-reading.js";
import { writeChanges } from "./batch-writing.js";
import { readChanges } from "./change-reads.js";
import { claimAlert, settleAlert } from "./kept-alerts.js";
import { readPage, readPrompt, readUser } from "./prompt-reads.js";
import { readConversation, readConversations, readUsers } from "./reuse-reads.js";
import { DAY_MS, MINUTE_MS, sendSweep } from "./sweep.js";
import { deletePiece, endDeletion, MOST_IN_PIECE, markDeleted } from "./user-removal.js";
import { readMisses, readSummary } from "./window-reads.js";

/** Connections of one process. */
const USAGE_CONNECTIONS = { writers: 1, readers: 2 } as const;

/** Entries of one transaction: bounds for how long the lock is held, and for how long this process computes. */
const MOST_ENTRIES = 2_000;

/** The advisory lock of those that write. */
const LOCK: NamedStatement = { name: "usage_lock", text: "select pg_advisory_xact_lock(7883957431812027)" };
const BEGIN_BATCH: NamedStatement = {
  name: "usage_begin_batch",
  text: `insert into ${SCHEMA}.usage_batches (id, at) values ($1, $2) on conflict do nothing returning id`,
};
const NUMBER_NOTE: NamedStatement = {
  name: "usage_number_note",
  text: `insert into ${SCHEMA}.usage_tenants as t (tenant, notes) values ($1, 1)
    on conflict (tenant) do update set notes = t.notes + 1 returning notes as number`,
};
/** Those of all tenants are numbered downwards, so that no two that a tenant sees are alike. */
const NUMBER_SHARED_NOTE: NamedStatement = {
  name: "usage_number_shared_note",
  text: `select coalesce(min(number), 0) - 1 as number from ${SCHEMA}.usage_notes where tenant is null`,
};
const KEEP_NOTE: NamedStatement = {
  name: "usage_keep_note",
  text: `insert into ${SCHEMA}.usage_notes (tenant, number, at, kind, label, model) values ($1, $2, $3, $4, $5, $6)`,
};
const dropNotes = (name: string, owner: string): NamedStatement => ({
  name,
  text: `delete from ${SCHEMA}.usage_notes where id in
    (select id from ${SCHEMA}.usage_notes where ${owner} order by at desc, id desc offset $1)`,
});
const DROP_NOTES = dropNotes("usage_drop_notes", "tenant = $2");
const DROP_SHARED_NOTES = dropNotes("usage_drop_shared_notes", "tenant is null");
const MARK: NamedStatement = { name: "usage_mark", text: `select text from ${SCHEMA}.usage_marks where name = $1` };
const KEEP_MARK: NamedStatement = {
  name: "usage_keep_mark",
  text: `insert into ${SCHEMA}.usage_marks (name, text) values ($1, $2) on conflict (name) do update set text = excluded.text`,
};

/** The usage log of a database that `openPostgres` brought up to date. It connects with the first call. */
export class PostgresUsageLog implements UsageLog {
  readonly #connections: Connections;
  /** When what is too old was last removed. */
  #sweptAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(
    url: string,
    private readonly bounds: UsageBounds = DEFAULT_USAGE_BOUNDS,
  ) {
    this.#connections = new Connections(url, USAGE_CONNECTIONS);
  }

  changes: UsageLog["changes"] = (since, followed) => readChanges(this.#connections, since, followed);
  summary: UsageLog["summary"] = (view) => readSummary(this.#connections, view);
  misses: UsageLog["misses"] = (view) => readMisses(this.#connections, view);
  prompts: UsageLog["prompts"] = (filter, before, limit) => readPage(this.#connections, filter, before, limit);
  prompt: UsageLog["prompt"] = (key) => readPrompt(this.#connections, key);
  users: UsageLog["users"] = (tenant, order, limit) => readUsers(this.#connections, tenant, order, limit);
  conversations: UsageLog["conversations"] = (of, order, limit) =>
    readConversations(this.#connections, of, order, limit);
  conversation: UsageLog["conversation"] = (of) => readConversation(this.#connections, of);
  exportUser: UsageLog["exportUser"] = (tenant, userId) => readUser(this.#connections, tenant, userId);

  /** `id` names the batch: it is recorded once, however often it is handed over because its outcome was not heard of. */
  async record(batch: readonly UsageEntry[], now: number, id: string = randomUUID()): Promise<void> {
    for (let from = 0; from === 0 || from < batch.length; from += MOST_ENTRIES) {
      const part = batch.slice(from, from + MOST_ENTRIES);
      await this.#write((client) => this.#record(client, `${id} ${from}`, part, now));
    }
  }

  async note(note: NewNote): Promise<KeptNote> {
    const { tenant, at, kind, label, model } = note;
    const number = await this.#write(async (client) => {
      const [, , numbers] = await Promise.all([
        client.query("begin"),
        ask(client, LOCK),
        nextNoteNumber(client, tenant),
      ]);
      const next = numbers[0]?.number ?? 0;
      const row = [tenant, next, at, kind, storable(label), model === null ? null : storable(model)];
      const { notes: most } = this.bounds;
      await Promise.all([
        ask(client, KEEP_NOTE, row),
        tenant === null ? ask(client, DROP_SHARED_NOTES, [most]) : ask(client, DROP_NOTES, [most, tenant]),
        client.query("commit"),
      ]);
      return next;
    });
    return { number, ...note };
  }

  replaceMark(name: string, text: string): Promise<string | null> {
    return this.#write(async (client) => {
      const [, , before] = await Promise.all([
        client.query("begin"),
        ask(client, LOCK),
        ask<{ text: string }>(client, MARK, [name]),
        ask(client, KEEP_MARK, [name, text]),
        client.query("commit"),
      ]);
      return before[0]?.text ?? null;
    });
  }

  claimAlert: UsageLog["claimAlert"] = (judged) => this.#write((client) => claimAlert(client, LOCK, judged));
  settleAlert: UsageLog["settleAlert"] = (rule, claim) => this.#write((client) => settleAlert(client, rule, claim));

  async deleteUser(tenant: string, userId: UserId, now: number): Promise<void> {
    await this.#write((client) =>
      Promise.all([
        client.query("begin"),
        ask(client, LOCK),
        markDeleted(client, digestOf(tenant, userId), now),
        client.query("commit"),
      ]),
    );
    // In pieces: nothing else is recorded while the lock is held.
    for (let gone = MOST_IN_PIECE; gone >= MOST_IN_PIECE; ) {
      gone = await this.#write(async (client) => {
        const [, , count] = await Promise.all([
          client.query("begin"),
          ask(client, LOCK),
          deletePiece(client, tenant, userId),
        ]);
        const last = count < MOST_IN_PIECE ? endDeletion(client, tenant, userId) : [];
        await Promise.all([...last, client.query("commit")]);
        return count;
      });
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#connections.close();
  }

  async #record(client: pg.ClientBase, id: string, batch: readonly UsageEntry[], now: number): Promise<void> {
    const isSweepDue = Math.abs(now - this.#sweptAt) >= MINUTE_MS;
    const [, , begun, known] = await Promise.all([
      client.query("begin"),
      ask(client, LOCK),
      ask(client, BEGIN_BATCH, [id, now]),
      readKnown(client, batch, this.bounds, isSweepDue),
    ]);
    if (begun.length === 0) {
      await client.query("rollback");
      return;
    }
    const changes = new BatchChanges(known, this.bounds);
    for (const entry of batch) changes.take(entry);
    const before = now - this.bounds.days * DAY_MS;
    changes.prune(before);
    await Promise.all([
      ...writeChanges(client, changes, now),
      ...(isSweepDue ? sendSweep(client, now, before) : []),
      client.query("commit"),
    ]);
    // Where all that were looked at went, more may be too old.
    const isBehind = known.oldest.length > 0 && known.oldest.every((prompt) => changes.removed.has(prompt.id));
    if (isSweepDue && !isBehind) this.#sweptAt = now;
  }

  /** In a transaction of `work`'s; once more where the connection was lost. Rejects with the store's faults. */
  async #write<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#connections.write(work);
      } catch (error) {
        const fault = this.#connections.noticed(error);
        const isLost = fault instanceof StoreUnavailableError && fault.fault === "unreachable";
        if (!isLost || attempt > 1) throw fault;
      }
    }
  }
}

function nextNoteNumber(client: pg.ClientBase, tenant: string | null): Promise<{ number: number }[]> {
  return tenant === null ? ask(client, NUMBER_SHARED_NOTE) : ask(client, NUMBER_NOTE, [tenant]);
}
