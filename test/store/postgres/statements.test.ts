import { describe, expect, it } from "vitest";
import { openPostgres } from "../../../src/store/postgres/open.js";
import { Statements, TABLES } from "../../../src/store/postgres/statements.js";
import { newDatabase, testServer } from "../../postgres/test-server.js";

const server = await testServer();

const asSent = (text: string) => new Statements(false).query({ text, values: [] }).text;

describe("statements for PostgreSQL", () => {
  it.each([
    ["select turn from turns where id = $1", "select turn from memprefix.turns where id = $1"],
    [
      "select * from scopes s\n  left join changes c on c.scope_id = s.id for update of s",
      "select * from memprefix.scopes s\n  left join memprefix.changes c on c.scope_id = s.id for update of s",
    ],
    [
      "insert into keys (id) values ($1) on conflict (id) do update set tenant = 'prompts'",
      "insert into memprefix.keys (id) values ($1) on conflict (id) do update set tenant = 'prompts'",
    ],
    [
      "update requests set report = $1 where turn_id in (select id from turns where at < $2)",
      "update memprefix.requests set report = $1 where turn_id in (select id from memprefix.turns where at < $2)",
    ],
    [
      "delete from messages where messages.key = $1 and exists (select from conversations)",
      "delete from memprefix.messages where messages.key = $1 and exists (select from memprefix.conversations)",
    ],
    ["select prompts from other", "select prompts from other"],
    ["select 1 from turns_before", "select 1 from turns_before"],
  ])("name the schema of tables: %s", (text, sent) => {
    expect(asSent(text)).toBe(sent);
  });

  it("have one name for one text, until names are forgotten", () => {
    const statements = new Statements(false);
    const named = statements.query({ text: "select $1", values: [1] });
    expect(named).toMatchObject({ text: "select $1", values: [1] });
    expect(statements.query({ text: "select $1", values: [2] }).name).toBe(named.name);
    expect(statements.query({ text: "select $2", values: [] }).name).not.toBe(named.name);
    statements.forgetNames();
    expect(statements.query({ text: "select $1", values: [1] })).not.toHaveProperty("name");
  });

  it.skipIf(server.url === null)("know every table that a migration creates", async () => {
    const database = await openPostgres(await newDatabase(server.url ?? ""));
    const tables = await database.read<{ name: string }>(
      "select tablename as name from pg_tables where schemaname = 'memprefix' and tablename <> 'migrations'",
      [],
    );
    expect(tables.map(({ name }) => name).sort()).toEqual([...TABLES].sort());
    await database.close();
  });
});
