import { existsSync, readFileSync } from "node:fs";
import Database from "better-sqlite3";
import type { EngineReport, StoredAnswer } from "../../../src/store/api/store.js";
import { DigestSeal } from "../../../src/store/database/digest-seal.js";
import { RECORD_KINDS } from "../../../src/store/journal/journal-database.js";
import type { SaidTurn } from "../../../src/store/journal/said-codec.js";
import { SaidCodec } from "../../../src/store/journal/said-codec.js";

/** Every row of every table in a database file, by a second connection that can only read. */
export function storedRows(file: string): ReadonlyMap<string, readonly Readonly<Record<string, unknown>>[]> {
  const database = new Database(file, { readonly: true, fileMustExist: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
    return new Map(
      tables.map((table) => [table, database.prepare(`SELECT * FROM "${table}"`).all() as Record<string, unknown>[]]),
    );
  } finally {
    database.close();
  }
}

/** A request as the journal's records tell it. */
export interface StoredRequest {
  readonly id: string;
  readonly answer: StoredAnswer | undefined;
  readonly observed: EngineReport | null;
}

/** The requests and turns in a file's journal, in the order in which they were stored. */
export function storedExchanges(file: string): { readonly requests: StoredRequest[]; readonly turns: SaidTurn[] } {
  const sqlite = new Database(file, { readonly: true, fileMustExist: true });
  try {
    const said = new SaidCodec(DigestSeal.of(sqlite));
    const reports = new Map<string, EngineReport>();
    const requests: Omit<StoredRequest, "observed">[] = [];
    const turns: SaidTurn[] = [];
    const rows = sqlite.prepare("select scope_id, kind, request_id, said from journal order by seq").raw().all();
    for (const [scopeId, number, id, text] of rows as [number, number, string | null, string | null][]) {
      const kind = RECORD_KINDS[number];
      if (kind === "reported" && text !== null) reports.set(`${scopeId} ${id}`, said.decodeReported(text));
      if ((kind !== "composed" && kind !== "said") || text === null) continue;
      const record = said.decodeComposed(text);
      turns.push(...record.turns);
      if (id !== null) requests.push({ id: `${scopeId} ${id}`, answer: record.request?.answer });
    }
    const named = requests.map(({ id, answer }) => ({
      id: id.slice(id.indexOf(" ") + 1),
      answer,
      observed: reports.get(id) ?? null,
    }));
    return { requests: named, turns };
  } finally {
    sqlite.close();
  }
}

/** How many rows each table has, and how many requests and turns stand in the journal's. */
export function rowCounts(file: string): Record<string, number> {
  const { requests, turns } = storedExchanges(file);
  const tables = [...storedRows(file)].map(([table, rows]) => [table, rows.length] as const);
  return { ...Object.fromEntries(tables), requests: requests.length, turns: turns.length };
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
