/*
 * usage/: the usage log, in a SQLite file of its own beside the store's, or in the schema `memstem` on a PostgreSQL server, for any number
 * of processes that record into one log.
 * In: batches of prompts and engines' reports; queries of one tenant. Out: rows, sums, notes.
 * A batch is applied in memory (`accounting.ts`) to what is stored of what it names, and each row that changes is written once
 * (`usage-writing.ts`). Sums over time are kept per minute, and added up to the steps of longer windows when they are read, and for good
 * when they are old (`usage-figures.ts`). SQL and tables (`usage-tables.ts`) are the same in both databases, but for a few words
 * (`Dialect`).
 */

import { randomUUID } from "node:crypto";
import type { UsageBounds, UsageLog } from "../api/usage-log.js";
import { claimed, type KeptAlert } from "../api/usage-log.js";
import { UsageReading } from "./usage-reading.js";
import type { UsageDatabase } from "./usage-tables.js";
import { UsageWriting } from "./usage-writing.js";

/** The usage log in a database. */
export class DatabaseUsageLog extends UsageReading implements UsageLog {
  readonly #writing: UsageWriting;

  constructor(database: UsageDatabase, bounds: UsageBounds) {
    super(database);
    this.#writing = new UsageWriting(database, bounds);
  }

  record: UsageLog["record"] = (batch, now, id = randomUUID()) => this.#writing.record(batch, now, id);
  note: UsageLog["note"] = (note) => this.#writing.note(note);
  deleteUser: UsageLog["deleteUser"] = (...of) => this.#writing.deleteUser(...of);
  close: UsageLog["close"] = () => this.database.close();

  replaceMark: UsageLog["replaceMark"] = (name, text) =>
    this.#writing.changeMark(name, (before) => ({ text, result: before }));

  claimAlert: UsageLog["claimAlert"] = (judged) =>
    this.#changeAlert(judged.rule, (before) => {
      const { row, claim } = claimed(before, judged);
      return { row, result: claim };
    });

  // A claim that was taken over settles nothing.
  settleAlert: UsageLog["settleAlert"] = (rule, claim) =>
    this.#changeAlert(rule, (before) => ({
      row: before?.number === claim ? { ...before, claimedUntil: null } : null,
      result: undefined,
    }));

  #changeAlert<T>(
    rule: string,
    change: (before: KeptAlert | null) => { row: KeptAlert | null; result: T },
  ): Promise<T> {
    return this.#writing.changeMark(`alert ${rule}`, (before) => {
      const { row, result } = change(before === null ? null : (JSON.parse(before) as KeptAlert));
      return { text: row === null ? null : JSON.stringify(row), result };
    });
  }
}
