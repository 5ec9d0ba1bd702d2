import { rmSync } from "node:fs";
import pg from "pg";
import { checkDatabase } from "../../src/store/check/check-database.js";
import { clientConfig } from "../../src/store/postgres/connections.js";
import { SCHEMA } from "../../src/store/postgres/schema.js";
import { openJournalDatabase } from "../../src/store/upgrade/upgrade-to-journal.js";
import { type Forgotten, marksIn } from "./actors.js";

type Row = Readonly<Record<string, unknown>>;

/** The journal's tables that both databases have with the same columns; scopes first, as others refer to them. */
const SAME_TABLES = ["journal", "snapshots", "instructions", "forgotten_memories"];

/**
 * Checks what stands in a PostgreSQL database: no row has anything that was forgotten, and what {@link checkDatabase} asks of a file holds
 * for its rows, which are copied into one for that. Throws for what does not.
 */
export async function checkServer(
  url: string,
  { gone }: Forgotten,
  copy: string,
): Promise<{ scopes: number; requests: number }> {
  const client = new pg.Client(clientConfig(url));
  await client.connect();
  const rows = new Map<string, readonly Row[]>();
  try {
    await client.query("begin isolation level repeatable read read only");
    const { rows: tables } = await client.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = $1",
      [SCHEMA],
    );
    for (const { name } of tables) {
      const { rows: texts } = await client.query<{ text: string }>(`select t::text as text from ${SCHEMA}.${name} t`);
      for (const { text } of texts)
        for (const mark of marksIn(text))
          if (gone.has(mark)) throw new Error(`${mark} was forgotten and is in ${name}`);
      rows.set(name, (await client.query<Row>(`select * from ${SCHEMA}.${name}`)).rows);
    }
    await client.query("commit");
  } finally {
    await client.end();
  }
  copyRows(rows, copy);
  const { scopes, requests, findings } = checkDatabase(copy);
  if (findings.length > 0) throw new Error(`the database is wrong:\n${findings.join("\n")}`);
  return { scopes, requests };
}

/** Writes the rows of a server's tables into a new file. */
function copyRows(tables: ReadonlyMap<string, readonly Row[]>, file: string): void {
  for (const path of [file, `${file}-wal`, `${file}-shm`]) rmSync(path, { force: true });
  const { sqlite } = openJournalDatabase(file);
  const rowsOf = (table: string) => tables.get(table) ?? [];
  const insert = (table: string, row: Row) => {
    const names = Object.keys(row).filter((name) => name !== "id" || table !== "journal");
    const text = `insert into ${table} (${names.join(", ")}) values (${names.map((name) => `@${name}`).join(", ")})`;
    sqlite.prepare<[Row]>(text).run(row);
  };
  try {
    sqlite.transaction(() => {
      for (const { key } of rowsOf("digest_keys")) {
        sqlite.prepare("delete from digest_keys").run();
        insert("digest_keys", { id: 1, key });
      }
      const older = { table_version: 0, next_label: 0, next_node: 0, next_turn: 0, requests: 0 };
      for (const row of rowsOf("scopes")) insert("users", { ...row, ...older });
      for (const table of SAME_TABLES) for (const row of rowsOf(table)) insert(table, row);
      // There they belong to a record, here to their scope.
      const seqs = new Map(rowsOf("journal").map(({ scope_id, seq }) => [scope_id, seq]));
      const hashes = new Map<unknown, number[]>();
      for (const row of rowsOf("known_memories"))
        hashes.set(row["scope_id"], [...(hashes.get(row["scope_id"]) ?? []), ...(row["hashes"] as number[])]);
      for (const [scopeId, of] of hashes) {
        const bytes = Buffer.alloc(4 * of.length);
        for (const [at, hash] of of.entries()) bytes.writeInt32BE(hash, 4 * at);
        insert("known_memories", { seq: seqs.get(scopeId), scope_id: scopeId, hashes: bytes });
      }
    })();
  } finally {
    sqlite.close();
  }
}
