import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterAll, expect, it } from "vitest";
import { loadEveryUser } from "../../../src/cli/stored-users.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { DATABASE_FILE, openOwned } from "../../../src/store/sqlite/open.js";
import { ComposedUsers, requestId, scopeOf, storedOf } from "../composed-users.js";

const directory = mkdtempSync(join(tmpdir(), "memprefix-killed-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const file = join(directory, DATABASE_FILE);
const PROCESS = join(import.meta.dirname, "composing-process.ts");
const KILLS = 12;

/** What a process said before it was killed after some milliseconds of composing. */
async function killedAfter(ms: number, run: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, ["--import", "tsx", PROCESS, file, String(run)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8");
  const started = new Promise<void>((resolve) => {
    child.stdout.on("data", (text: string) => {
      printed += text;
      resolve();
    });
  });
  await started;
  await pause(ms);
  child.kill("SIGKILL");
  await once(child, "close");
  // The last line may be half of one.
  return printed.split("\n").slice(0, -1);
}

it("keep what was acknowledged, and nothing half, wherever the process is killed", async () => {
  /** Users by their names and their requests'. */
  const composed = new Map<string, string>();
  const forgotten = new Set<string>();
  for (let run = 0; run < KILLS; run++) {
    for (const line of await killedAfter(20 + ((run * 237) % 1_500), run)) {
      const [what, user = "", name = ""] = line.split(" ");
      if (what === "composed") composed.set(`${user} ${name}`, user);
      if (what === "forgotten") forgotten.add(`${user} ${name}`);
    }
    const sqlite = new Database(file);
    expect(sqlite.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(
      sqlite
        .prepare(
          "select count(*) from turns t where not exists (select 1 from requests r where r.scope_id = t.scope_id and r.turn_id = t.id)",
        )
        .pluck()
        .get(),
    ).toBe(0);
    sqlite.close();
  }
  expect(composed.size).toBeGreaterThan(500);
  expect(forgotten.size).toBeGreaterThan(0);

  const { database } = openOwned(directory);
  const users = new ComposedUsers(storeIn(database));
  expect((await loadEveryUser(users.store)).findings).toEqual([]);
  for (const [key, user] of composed) {
    const [, name = ""] = key.split(" ");
    const found = await users.store.findRequest(await users.numberOf(scopeOf(`user-${user}`)), requestId(name));
    if (forgotten.has(`${user} only-${name}`)) expect(found, key).toBeNull();
    // Its memory may have been forgotten without that being said.
    else if (Number(name.split("-")[1]) % 9 !== 8)
      expect(found?.turns.at(-1)?.given.at(-1)?.content, key).toBe(`Question ${name}?`);
  }
  for (const one of forgotten) {
    const [user = "", memory = ""] = one.split(" ");
    const { stored } = await storedOf(users.store, scopeOf(`user-${user}`));
    expect(stored?.register.forgotten).toContain(memory);
    expect(readFileSync(file).includes(`${memory.replace("only-", "Only ")} of user ${user}.`), one).toBe(false);
  }
  // They go on.
  for (let user = 0; user < 8; user++)
    await users.compose(scopeOf(`user-${user}`), {
      requestId: "next",
      question: "And now?",
      memories: { m1: `Fact 1 of user ${user}.` },
      conversation: "c0-0",
    });
  await database.close();
});
