import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { checkDatabase } from "../../../src/store/check/check-database.js";
import { DatabaseOpenError } from "../../../src/store/database/database-open-error.js";
import { openDatabase } from "../../../src/store/database/open-database.js";
import { openJournalDatabase } from "../../../src/store/upgrade/upgrade-to-journal.js";
import { composeInto, scopeOf } from "../api/stored-compose.js";
import { TableStore } from "../tables/table-store.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-damaged-tables-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;

/** A file of which nothing is in the journal yet, with two users in the tables, and then something changed. */
async function broken(sql: string): Promise<string> {
  const file = join(directory, `file-${++files}.db`);
  const database = openDatabase(file);
  const store = new TableStore(database);
  for (const user of ["ana", "bo"]) {
    for (let n = 0; n < 4; n++) {
      const memories = { [`m${n}`]: `Fact ${n} of ${user}.` };
      await composeInto(store, scopeOf(user), { requestId: `r${n}`, question: "Well?", memories });
    }
  }
  expect(checkDatabase(file)).toMatchObject({ findings: [], scopes: 2, requests: 8 });
  database.sqlite.exec(sql);
  await store.close();
  return file;
}

function refusal(file: string): DatabaseOpenError | null {
  try {
    openJournalDatabase(file).sqlite.close();
    return null;
  } catch (error) {
    if (error instanceof DatabaseOpenError) return error;
    throw error;
  }
}

describe("tables of an earlier version in which something is wrong", () => {
  const OF_BO = "scope_id = 2 and";

  it.each([
    [`update turns set injection = 'Fact 9' where ${OF_BO} id = 2`, "an injection: not valid JSON"],
    [`update turns set requested = '["Fact 9"]' where ${OF_BO} id = 2`, "a list of labels: expected a whole number"],
    [`update messages set body = 'Fact 9' where ${OF_BO} true`, "a message: not valid JSON"],
    [`update requests set answer = '{}' where ${OF_BO} request_id = 'r1'`, "an answer: "],
    [`update requests set observed = 'Fact 9' where ${OF_BO} request_id = 'r1'`, "a report: not valid JSON"],
    [`update turns set anchor = 'Fact 9' where ${OF_BO} id = 2`, "damaged digest: "],
  ])(
    "by %s are not opened: the error has the scope's number, a check its user, and none a text",
    async (sql, reason) => {
      const file = await broken(sql);
      const told = refusal(file)?.reason;
      expect(told).toContain(`scope 2 of an earlier version cannot be moved into the journal (${reason}`);
      expect(told).not.toMatch(/Fact|"bo"/);
      const { findings, scopes } = checkDatabase(file);
      expect(findings).toHaveLength(1);
      expect(findings[0]).toContain(`user "default" "bo": ${reason}`);
      expect(findings[0]).not.toContain("Fact");
      // What was moved before is checked as the journal, and is there when the row is mended.
      expect(scopes).toBe(1);
      const sqlite = new Database(file, { readonly: true });
      expect(sqlite.prepare("select table_version from users").pluck().all()).toEqual([0, 4]);
      sqlite.close();
    },
  );

  it.each([
    ["update blocks set text = text || '!' where label = 1", /a section whose digest is missing/],
    ["update users set next_label = 1", /a label past the scope's counter/],
    ["update users set next_turn = 1", /knows turn \d+, which is past the scope's counter/],
    ["update users set next_node = 1", /index node \d+ has an id past the scope's counter/],
    ["delete from sections", /a section whose digest is missing/],
    ["delete from heads", /instructions that are missing/],
    ['update turns set injection = \'{"b":[99],"a":[]}\' where id = 2', /injects blocks \[99\], which are missing/],
    ["update turns set parent = 7 where id = 2", /continues turn 7, which does not precede it/],
    ["update memory_versions set current = 0 where label = 1", /a memory does not have exactly one current version/],
    ["update index_nodes set live = live + 9", /index node \d+ counts \d+ live requests of /],
    ["update index_nodes set parent = 777 where parent is not null", /node/],
    ["update users set banked_tokens = -1", /its memory bank is below zero/],
    ["delete from blocks where label = 1", /block \[1\], which is missing/],
    ["delete from memory_versions where label = 1", /block \[1\] belongs to no memory/],
  ])("by %s are moved as they are, and a check names what is wrong", async (sql, finding) => {
    const file = await broken(sql);
    expect(refusal(file)).toBeNull();
    expect(checkDatabase(file).findings.join("\n")).toMatch(finding);
  });
});

it("an upgrade is told of, with the schema and the scopes, and nothing of a file that is up to date", () => {
  const file = join(directory, "older.db");
  const sqlite = new Database(file);
  sqlite.pragma("foreign_keys = OFF");
  const fixture = resolve(import.meta.dirname, "../database/fixtures/0009_scopes_together.sql");
  sqlite.exec(readFileSync(fixture, "utf8"));
  sqlite.close();
  const told: object[] = [];
  const open = () => openJournalDatabase(file, (event) => told.push(event)).sqlite.close();
  open();
  const ms = expect.any(Number) as number;
  expect(told).toEqual([
    { kind: "schema", schema: { applied: 10, known: expect.any(Number) as number } },
    { kind: "moving", scopes: 0, of: 3, ms },
    { kind: "done", scopes: 3, ms },
  ]);
  open();
  openJournalDatabase(":memory:", (event) => told.push(event)).sqlite.close();
  expect(told).toHaveLength(3);
});
