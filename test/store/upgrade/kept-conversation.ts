import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { assemble } from "../../../src/cli/assemble.js";
import { readSettings } from "../../../src/cli/settings.js";
import {
  composeBodyWithNulls,
  composeResult,
  readCompose,
  writeCompose,
} from "../../../src/http/contracts/contracts.js";

/** A request of then, and its answer's JSON. */
export interface KeptExchange {
  readonly body: { readonly messages: readonly object[] };
  readonly answer: string;
}

export type Message = { readonly role: string; readonly content: string };

/** A database as earlier code wrote it, by the name of its fixture, and what was asked and answered then. */
export class KeptConversation {
  readonly exchanges: readonly KeptExchange[];
  readonly #directory = mkdtempSync(join(tmpdir(), "memstem-kept-"));
  #directories = 0;

  constructor(private readonly name: string) {
    this.exchanges = JSON.parse(readFileSync(this.#fixture("json"), "utf8")) as readonly KeptExchange[];
  }

  /** A new data directory with the database as it was kept. */
  keptThen(): string {
    const dataDir = this.newDataDir();
    mkdirSync(dataDir);
    const sqlite = new Database(join(dataDir, "memstem.db"));
    sqlite.pragma("foreign_keys = OFF");
    sqlite.exec(readFileSync(this.#fixture("sql"), "utf8"));
    sqlite.close();
    return dataDir;
  }

  /** Path of a data directory that is not there yet. */
  newDataDir(): string {
    return join(this.#directory, `data-${++this.#directories}`);
  }

  dispose(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #fixture(type: "json" | "sql"): string {
    return join(import.meta.dirname, "../database/fixtures", `${this.name}.${type}`);
  }
}

/** The service of today on a data directory. */
export function opened(dataDir: string, markers: readonly string[] = []) {
  const settings = { MEMSTEM_DATA_DIR: dataDir, MEMSTEM_SOURCE: "none", MEMSTEM_ESCAPE: JSON.stringify(markers) };
  const memstem = assemble(readSettings(settings), null);
  const ask = async (body: object) =>
    composeResult.parse(writeCompose(await memstem.compose(readCompose(composeBodyWithNulls.parse(body)))));
  return {
    ask,
    forget: (id: string) => memstem.forgetMemory("ada" as never, id as never),
    close: () => memstem.close(),
  };
}

/** A history with one more turn. */
export const said = (turn: number, before: readonly object[]) => [
  ...before,
  { role: "assistant", content: `Answer ${turn - 1}.` },
  { role: "user", content: `Question ${turn}?` },
];
