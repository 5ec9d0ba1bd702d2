import pg from "pg";
import { loadEveryUser } from "../../src/cli/stored-users.js";
import { clientConfig } from "../../src/store/postgres/connections.js";
import { openPostgres } from "../../src/store/postgres/open.js";
import { SCHEMA } from "../../src/store/postgres/statements.js";
import { storeIn } from "../../src/store/sql-store.js";
import { type Forgotten, marksIn } from "./actors.js";

/**
 * Checks what stands in a PostgreSQL database: no row has anything that was forgotten, and everything in it loads. Throws for what
 * does not. Gives how many requests there are.
 */
export async function checkServer(url: string, { gone }: Forgotten): Promise<number> {
  const client = new pg.Client(clientConfig(url));
  await client.connect();
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
    }
    await client.query("commit");
  } finally {
    await client.end();
  }
  const store = storeIn(await openPostgres(url));
  const { requests, findings } = await loadEveryUser(store).finally(() => store.close());
  if (findings.length > 0) throw new Error(`the database is wrong:\n${findings.join("\n")}`);
  return requests;
}
