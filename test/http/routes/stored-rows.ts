import { existsSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";
import type { EngineReport, Turn } from "../../../src/core/index.js";
import { decodeAnswer, decodeTurn, type TurnColumns } from "../../../src/store/rows.js";
import type { StoredAnswer } from "../../../src/store/store.js";

/** Every row of every table in a database file, by a second connection that can only read. */
export function storedRows(file: string): ReadonlyMap<string, readonly Readonly<Record<string, unknown>>[]> {
  const database = new Database(file, { readonly: true, fileMustExist: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
    return new Map(
      tables.map((table) => [
        table,
        database.prepare(`SELECT * FROM "${table}" ORDER BY rowid`).all() as Record<string, unknown>[],
      ]),
    );
  } finally {
    database.close();
  }
}

/** A request as its row says it. */
export interface StoredRequest {
  readonly id: string;
  readonly answer: StoredAnswer;
  /** Null: the engine reported nothing. */
  readonly observed: EngineReport | null;
}

/** A turn, and the messages that were first sent with it. */
export interface StoredTurn {
  readonly turn: Turn;
  readonly given: readonly unknown[];
}

/** The requests and turns in a file, in the order in which they were stored. */
export function storedExchanges(file: string): { readonly requests: StoredRequest[]; readonly turns: StoredTurn[] } {
  const rows = storedRows(file);
  const messages = (rows.get("messages") ?? []).filter(({ key }) => !String(key).startsWith("head "));
  const requests = (rows.get("requests") ?? []).map(({ id, answer, report }) => ({
    id: String(id),
    answer: decodeAnswer(String(answer)),
    observed: report === null ? null : (JSON.parse(String(report)) as EngineReport),
  }));
  const turns = (rows.get("turns") ?? []).map((row) => {
    const { scope_id, id, conversation_id: conversationId, head, turn } = row;
    const given = messages.filter((one) => one["scope_id"] === scope_id && one["turn_id"] === id);
    return {
      turn: decodeTurn({ id, conversationId, head, turn } as TurnColumns).turn,
      given: given.map(({ message }) => JSON.parse(String(message)) as unknown),
    };
  });
  return { requests, turns };
}

/** How many rows each table has. */
export function rowCounts(file: string): Record<string, number> {
  return Object.fromEntries([...storedRows(file)].map(([table, rows]) => [table, rows.length]));
}

/** The columns in which a text stands, as `table.column`. */
export function columnsHolding(file: string, text: string): string[] {
  const inJson = JSON.stringify(text).slice(1, -1);
  const found = new Set<string>();
  for (const [table, rows] of storedRows(file)) {
    for (const [column, value] of rows.flatMap((row) => Object.entries(row))) {
      const cell = String(value);
      if (cell.includes(text) || cell.includes(inJson)) found.add(`${table}.${column}`);
    }
  }
  return [...found];
}

/** Which of a database's files hold a text anywhere: in rows, in free pages or in the log. */
export function filesHolding(file: string, text: string): string[] {
  return [file, `${file}-wal`, `${file}-shm`, `${file}-journal`].filter(
    (path) => existsSync(path) && readFileSync(path).includes(text),
  );
}

/** The parts of rows' texts that match. */
export function textsMatching(file: string, pattern: RegExp): readonly string[] {
  const values = [...storedRows(file).values()].flat().flatMap((row) => Object.values(row));
  const found = values.flatMap(
    (value) => pattern.exec(Buffer.isBuffer(value) ? value.toString("latin1") : String(value)) ?? [],
  );
  return [...new Set(found)].toSorted();
}
