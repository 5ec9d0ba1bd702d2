import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { assemble } from "../../../src/cli/assemble.js";
import { readSettings } from "../../../src/cli/settings.js";
import {
  composeBodyWithNulls,
  composeResult,
  readCompose,
  writeCompose,
} from "../../../src/http/contracts/contracts.js";
import type { Memstem } from "../../../src/service/library/memstem.js";
import { checkDatabase } from "../../../src/store/check/check-database.js";
import { structureProblems } from "../../../src/store/check/check-structure.js";
import { openDatabase, openToRead } from "../../../src/store/database/open-database.js";
import { launch, listening } from "../../cli/launch.js";
import { seededNumbers } from "../../cli/seeded-numbers.js";

const directory = mkdtempSync(join(tmpdir(), "memstem-upgrade-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const migrations = resolve(import.meta.dirname, "../../../migrations");
const { entries } = JSON.parse(readFileSync(join(migrations, "meta", "_journal.json"), "utf8")) as {
  entries: readonly { readonly tag: string }[];
};
/** Schemas of which there is a database as the code of that time wrote it. A new migration may add the one before it. */
const KEPT = [
  "0000_first",
  "0001_ordering_rows",
  "0002_retention",
  "0003_residency",
  "0004_first_token_times",
  "0005_requests_by_turn",
  "0006_api_keys",
  "0007_labels_apart",
  "0008_memory_bank",
  "0009_scopes_together",
] as const;

interface Exchange {
  readonly body: Readonly<Record<string, unknown>> & { readonly request_id: string };
  readonly answer: string;
}

const fixture = (name: string) => join(import.meta.dirname, "fixtures", name);
let directories = 0;

/** A data directory that holds a database as it was written then. */
function directoryOf(tag: string): string {
  const dataDir = join(directory, `data-${++directories}`);
  mkdirSync(dataDir);
  const sqlite = new Database(join(dataDir, "memstem.db"));
  sqlite.pragma("journal_mode = WAL");
  sqlite.pragma("foreign_keys = OFF");
  sqlite.exec(readFileSync(fixture(`${tag}.sql`), "utf8"));
  sqlite.close();
  return dataDir;
}

const open = (dataDir: string) => assemble(readSettings({ MEMSTEM_DATA_DIR: dataDir, MEMSTEM_SOURCE: "none" }), null);

async function ask(memstem: Memstem, body: object) {
  return composeResult.parse(writeCompose(await memstem.compose(readCompose(composeBodyWithNulls.parse(body)))));
}

describe("a database of an earlier version", () => {
  it("is kept of every schema up to some", () => {
    expect(KEPT).toEqual(entries.slice(0, KEPT.length).map(({ tag }) => tag));
  });

  it.each(KEPT)("at %s opens, repeats its answers, and goes on with its conversation byte for byte", async (tag) => {
    const dataDir = directoryOf(tag);
    const file = join(dataDir, "memstem.db");
    const exchanges = JSON.parse(readFileSync(fixture(`${tag}.json`), "utf8")) as readonly Exchange[];
    const applied = KEPT.indexOf(tag) + 1;
    expect(checkDatabase(file)).toMatchObject({ schema: { applied, known: entries.length }, findings: [] });

    openDatabase(file).sqlite.close();
    expect(checkDatabase(file).findings).toEqual([]);
    const memstem = open(dataDir);
    for (const { body, answer } of exchanges) {
      const { plan: planBefore, ...before } = JSON.parse(answer) as Readonly<Record<string, object>>;
      const { plan, warnings, ...again } = await ask(memstem, body);
      expect({ ...again, warnings }, body.request_id).toEqual(before);
      // A plan says more today, and of what it said nothing else.
      expect(plan, body.request_id).toMatchObject(planBefore ?? {});
    }

    const last = exchanges.findLast(({ body }) => body["conversation_id"] === "tea");
    const history = last?.body["messages"] as readonly { role: string; content: string }[];
    const spoken = [
      { role: "assistant", content: "Answer 3." },
      { role: "user", content: "And now?" },
    ];
    const memories = [
      { id: "m-1", memory: "Ana drinks black tea now." },
      { id: "m-4", memory: "Ana sings." },
    ];
    const next = { ...last?.body, request_id: "turn-4", messages: [...history, ...spoken], memories };
    const { messages, plan } = await ask(memstem, next);
    const before = (JSON.parse(last?.answer ?? "") as { messages: readonly unknown[] }).messages;
    expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
    expect(messages).toHaveLength(before.length + 2);
    expect(plan.expected_cached_tokens).toBeGreaterThan(0);
    // What was known is not given again, what is new is.
    expect(messages.at(-1)?.content).toContain("Ana sings.");
    expect(messages.at(-1)?.content).not.toContain("black tea");
    expect(await ask(memstem, next)).toMatchObject({ messages, plan });
    await memstem.close();
    expect(checkDatabase(file)).toMatchObject({
      schema: { applied: entries.length, known: entries.length },
      findings: [],
      scopes: 3,
      requests: exchanges.length + 1,
    });
    const written = readFileSync(file, "latin1");
    expect(written).toContain("Bo is tall.");
    expect(written).not.toContain("Bo hides the key.");
  });

  it("has its digests nowhere in the file once it was opened: they are sealed, and what was free is rewritten", async () => {
    const dataDir = directoryOf("0009_scopes_together");
    const file = join(dataDir, "memstem.db");
    const written = readFileSync(fixture("0009_scopes_together.sql"), "utf8").split("\n");
    const ofScopes = written.filter((line) => !line.includes("__drizzle_migrations")).join("\n");
    const digests = new Set(ofScopes.match(/(?<![\w-])[\w-]{43}(?![\w-])/g));
    expect(digests.size).toBeGreaterThan(30);
    const left = () => [...digests].filter((digest) => readFileSync(file).includes(digest));
    expect(left()).not.toEqual([]);
    const memstem = open(dataDir);
    await expect.poll(left, { timeout: 10_000 }).toEqual([]);
    await memstem.close();
  });

  it("has nothing in place of what an earlier version erased: the rest of it goes on", async () => {
    const dataDir = directoryOf("0009_scopes_together");
    const file = join(dataDir, "memstem.db");
    const sqlite = new Database(file);
    sqlite.exec(
      "update turns set given = null where id = 2; update heads set messages = null where messages like '%kind%'",
    );
    sqlite.close();
    const exchanges = JSON.parse(readFileSync(fixture("0009_scopes_together.json"), "utf8")) as readonly Exchange[];
    openDatabase(file).sqlite.close();
    expect(checkDatabase(file).findings).toEqual([]);
    const memstem = open(dataDir);
    for (const { body, answer } of exchanges) {
      const { messages } = JSON.parse(answer) as { messages: unknown };
      const again = await ask(memstem, body);
      // Those that were erased are composed anew, and then repeated; behind a turn that stays erased, each time of the same messages.
      if (body["conversation_id"] === null || body["conversation_id"] === undefined)
        expect(again.messages).toEqual(messages);
      expect({ ...(await ask(memstem, body)), warnings: [] }).toEqual({ ...again, warnings: [] });
    }
    await memstem.close();
  });

  it("is at its schema or at ours, and nothing between, when the process that brings it up to date is killed", async () => {
    const random = seededNumbers(7);
    const template = join(directoryOf("0000_first"), "memstem.db");
    const sqlite = new Database(template);
    // Rows enough that the steps take their time.
    sqlite.exec(`
      create temp table n as with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000) select i from n;
      insert into turns (scope_id, id, given_digests, given, placement, injection, head, prompt, anchor, prompt_tokens, created_at)
        select scope_id, 100 + i, given_digests, given, placement, injection, head, prompt, anchor, prompt_tokens, created_at
        from n, turns where scope_id = 1 and id = 5;
      insert into requests (scope_id, request_id, turn, leaf, body, answer, evicted, observed, created_at)
        select scope_id, 'many-' || i, 100 + i, leaf, body, answer, 1, null, created_at
        from n, requests where scope_id = 1 and turn = 5;
      update users set next_turn = 10000 where scope_id = 1;
    `);
    sqlite.close();
    const outcomes = new Set<number>();
    // The first is left alone until it listens: how long that takes says when to kill the others.
    let took = 0;
    for (let kill = 0; kill < 4; kill++) {
      const dataDir = join(directory, `killed-${kill}`);
      mkdirSync(dataDir);
      const file = join(dataDir, "memstem.db");
      copyFileSync(template, file);
      const migrating = launch(["serve"], {
        PATH: process.env["PATH"] ?? "",
        MEMSTEM_DATA_DIR: dataDir,
        MEMSTEM_PORT: "0",
        MEMSTEM_SOURCE: "none",
      });
      const began = performance.now();
      const isUp = listening(migrating).then(
        () => performance.now() - began,
        () => took,
      );
      if (kill === 0) took = await isUp;
      else await new Promise((wait) => setTimeout(wait, took * (0.4 + 0.6 * random())));
      migrating.child.kill("SIGKILL");
      await migrating.ended;
      const { sqlite: left, schema } = openToRead(file);
      expect(structureProblems(left)).toEqual([]);
      left.close();
      // One transaction for all steps: it is done or it is not.
      expect([1, entries.length]).toContain(schema.applied);
      outcomes.add(schema.applied);
      openDatabase(file).sqlite.close();
      expect(checkDatabase(file)).toMatchObject({
        findings: [],
        schema: { applied: entries.length },
        requests: 5_007,
      });
    }
    expect(outcomes).toContain(entries.length);
  }, 180_000);

  it("is brought up to date once, by whichever of several processes that start together comes first", async () => {
    const dataDir = directoryOf("0000_first");
    const script = `
      import { openDatabase } from ${JSON.stringify(resolve(import.meta.dirname, "../../../dist/store/database/open-database.js"))};
      process.stdin.once("data", () => { openDatabase(${JSON.stringify(join(dataDir, "memstem.db"))}).sqlite.close(); process.exit(0); });
      process.stdout.write("ready");`;
    const processes = Array.from({ length: 5 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    await Promise.all(processes.map(({ stdout }) => once(stdout, "data")));
    const ended = processes.map((child) => once(child, "exit"));
    for (const { stdin } of processes) stdin.end("go");
    expect(await Promise.all(ended)).toEqual(processes.map(() => [0, null]));
    expect(checkDatabase(join(dataDir, "memstem.db"))).toMatchObject({ findings: [], requests: 7 });
  });
});
