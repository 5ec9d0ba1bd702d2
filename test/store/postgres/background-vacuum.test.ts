import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { BackgroundVacuum } from "../../../src/store/postgres/background-vacuum.js";
import { openPostgres } from "../../../src/store/postgres/open-postgres.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";
import { composed, scopeNamed, unitOf } from "../journal/journal-database.suite.js";

const server = await testServer();

describe.skipIf(server.url === null)("erased text in PostgreSQL", () => {
  it("is in no row, and a vacuum has begun to free its room", async () => {
    const url = await newDatabase(server.url ?? "");
    const { journal } = await openPostgres(url);
    const ana = scopeNamed("ana");
    const { version } = await journal.write(unitOf(ana, null, [composed(1, { said: '["the secret"]' })]));
    const [key] = await journal.list(version?.scopeId ?? 0, { most: 1 });
    await journal.write({
      ...unitOf(ana, version, []),
      changes: [{ kind: "rewrite", seq: key?.seq ?? 0, to: { said: "[null]" } }],
      erased: ["the secret"],
    });
    await journal.vacuumed();
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query("select said from memprefix.journal");
    expect(rows).toEqual([{ said: "[null]" }]);
    const vacuums = async () => {
      const counts = await client.query<{ count: string }>(
        "select vacuum_count as count from pg_stat_user_tables where schemaname = 'memprefix' and relname = 'journal'",
      );
      return Number(counts.rows[0]?.count);
    };
    // The server counts it a moment later.
    await expect.poll(vacuums).toBe(1);
    await client.end();
    await journal.close();
  });

  it("keeps nothing from closing, whenever that is", async () => {
    const url = await newDatabase(server.url ?? "");
    const { journal } = await openPostgres(url);
    await journal.close();
    // It takes some milliseconds to connect.
    for (let pause = 0; pause < 60; pause++) {
      const vacuum = new BackgroundVacuum(url);
      vacuum.request();
      await setTimeout((pause / 5) % 12);
      await vacuum.close();
    }
  });
});
