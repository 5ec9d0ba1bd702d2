import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { Choices, memoryOf } from "../crash/actors.js";
import { ask, GONE, servicesAt } from "../crash/answers.js";
import { commands, type Ended } from "./memprefix-command.js";
import type { Listening } from "./own-directories.js";

const at = ({ address }: Listening<Ended>) => servicesAt(() => address);

describe("memprefix backup", () => {
  const memprefix = commands();

  it("copies the directory of a service under load; the copy is sound, and restored it has every answer of before", async () => {
    const service = await memprefix.serve();
    const choices = new Choices(5);
    const answers = new Map<string, { readonly body: object; readonly text: string }>();
    let isLoaded = true;
    const load = async (user: string) => {
      for (let n = 0; isLoaded; n++) {
        const id = `${user}-${n}`;
        const body = {
          user_id: user,
          conversation_id: null,
          request_id: id,
          query: "Well?",
          memories: choices.found(user),
        };
        const text = await ask(at(service), "POST", "/compose", body);
        if (text === GONE) throw new Error("the service died");
        answers.set(id, { body, text });
      }
    };
    const loading = Promise.all(["ada", "bob", "cy"].map(load));
    while (answers.size < 60) await new Promise((resolve) => setTimeout(resolve, 5));
    const before = [...answers.values()];
    const copy = join(memprefix.root, "copy");
    const made = await memprefix.run(["backup", copy]);
    expect(made).toMatchObject({ code: 0, stderr: "", stdout: `${memprefix.dataDir} is copied to ${copy}\n` });
    const checkedLive = await memprefix.run(["check"]);
    isLoaded = false;
    await loading;
    expect(answers.size).toBeGreaterThan(before.length);
    expect(checkedLive).toMatchObject({ code: 0, stderr: "" });
    expect(checkedLive.stdout).toMatch(
      /^memprefix\.db: 3 scopes, \d+ requests: nothing is wrong\nusage\.db: figures of \d+ prompts: nothing is wrong\n$/,
    );
    expect(readdirSync(copy).sort()).toEqual(["memprefix.db", "usage.db"]);
    const checked = await memprefix.run(["check", copy]);
    expect(checked).toMatchObject({ code: 0, stderr: "" });
    const [, requests] = /(\d+) requests: nothing is wrong/.exec(checked.stdout) ?? [];
    expect(Number(requests)).toBeGreaterThanOrEqual(before.length);

    service.kill("SIGTERM");
    await service.ended;
    rmSync(memprefix.dataDir, { recursive: true });
    renameSync(copy, memprefix.dataDir);
    const restored = await memprefix.serve();
    for (const { body, text } of before) expect(await ask(at(restored), "POST", "/compose", body)).toBe(text);
  });

  it("takes the embedded Mem0's memories along", async () => {
    const service = await memprefix.serve({ MEMPREFIX_SOURCE: "embedded", MEMPREFIX_SEARCH_TIMEOUT_MS: "600000" });
    const headers = { "content-type": "application/json" };
    const added = await fetch(`${service.address}/memories`, {
      method: "POST",
      headers,
      body: JSON.stringify({ user_id: "ada", memories: ["Ada drinks green tea"] }),
    });
    expect(added.status, await added.text()).toBe(201);
    const copy = join(memprefix.root, "copy");
    expect(await memprefix.run(["backup", copy])).toMatchObject({ code: 0, stderr: "" });
    expect((await memprefix.run(["check", copy])).stdout).toContain("mem0/vectors.db: memories: nothing is wrong\n");
    service.kill("SIGTERM");
    await service.ended;
    const environment = {
      MEMPREFIX_SOURCE: "embedded",
      MEMPREFIX_DATA_DIR: copy,
      MEMPREFIX_SEARCH_TIMEOUT_MS: "600000",
    };
    const restored = await memprefix.serve(environment);
    const found = await ask(at(restored), "POST", "/compose", {
      user_id: "ada",
      query: "Which tea does Ada drink?",
    });
    expect(found).toContain("Ada drinks green tea");
  });

  it("takes the dashboard's figures along, and goes without them where they are damaged", async () => {
    const service = await memprefix.serve();
    const compose = (id: string) =>
      ask(at(service), "POST", "/compose", { user_id: "ada", request_id: id, query: "Well?", memories: [] });
    const summary = (of: Listening<Ended>) => ask(at(of), "GET", "/usage/summary", undefined);
    await compose("r1");
    expect(await summary(service)).toContain('"prompts":1');
    const copy = join(memprefix.root, "copy");
    expect(await memprefix.run(["backup", copy])).toMatchObject({ code: 0, stderr: "" });
    await compose("r2");
    expect(await summary(service)).toContain('"prompts":2');
    service.kill("SIGTERM");
    await service.ended;
    const restored = await memprefix.serve({ MEMPREFIX_DATA_DIR: copy });
    expect(await summary(restored)).toContain('"prompts":1');
    restored.kill("SIGTERM");
    await restored.ended;

    writeFileSync(join(memprefix.dataDir, "usage.db"), "This is no database. ".repeat(500));
    const checked = await memprefix.run(["check"]);
    expect(checked).toMatchObject({ code: 1, stderr: "" });
    expect(checked.stdout).toContain("memprefix.db: 1 scopes, 2 requests: nothing is wrong\nusage.db: ");
    const without = join(memprefix.root, "without");
    const made = await memprefix.run(["backup", without]);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).toMatch(/^usage\.db is damaged, and not in the copy\n/);
    expect(readdirSync(without)).toEqual(["memprefix.db"]);
  });

  it("overwrites nothing, and says what it misses", async () => {
    const service = await memprefix.serve();
    const taken = join(memprefix.root, "taken");
    writeFileSync(taken, "somebody's");
    expect(await memprefix.run(["backup", taken])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `memprefix: cannot copy to ${taken}: it exists already\n`,
    });
    expect(readFileSync(taken, "utf8")).toBe("somebody's");
    service.kill("SIGTERM");
    await service.ended;
    const environment = { MEMPREFIX_DATA_DIR: join(memprefix.root, "nothing") };
    for (const args of [["backup", join(memprefix.root, "new")], ["check"]]) {
      const refused = await memprefix.run(args, { environment });
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(
        /^memprefix: cannot open the database .*nothing\/memprefix\.db: there is no such file\n$/,
      );
    }
    expect(existsSync(join(memprefix.root, "new"))).toBe(false);
  });

  it("says in a line that the copy's directory cannot be made", async () => {
    const service = await memprefix.serve();
    service.kill("SIGTERM");
    await service.ended;
    writeFileSync(join(memprefix.root, "file"), "");
    const places = [join(memprefix.root, "file", "copy"), ...(existsSync("/proc/self/status") ? ["/proc/copy"] : [])];
    for (const place of places) {
      const refused = await memprefix.run(["backup", place]);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^memprefix: cannot copy to .*: (ENOTDIR|ENOENT): .*\n$/);
    }
    const nowhere = await memprefix.run(["backup", ""]);
    expect(nowhere).toMatchObject({
      code: 1,
      stdout: "",
      stderr: 'memprefix: cannot copy to "": it names no directory\n',
    });
  });
});

describe("memprefix check", () => {
  const memprefix = commands();

  it("says what is wrong, and ends with 1", async () => {
    const service = await memprefix.serve();
    const body = { user_id: "ada", request_id: "r", query: "Well?", memories: [memoryOf("ada", 0)] };
    await ask(at(service), "POST", "/compose", body);
    service.kill("SIGTERM");
    await service.ended;
    expect(await memprefix.run(["check"])).toMatchObject({
      code: 0,
      stdout:
        "memprefix.db: 1 scopes, 1 requests: nothing is wrong\nusage.db: figures of 1 prompts: nothing is wrong\n",
      stderr: "",
    });
    const sqlite = new Database(join(memprefix.dataDir, "memprefix.db"));
    sqlite.exec("update journal set changes = replace(changes, 'a', 'b')");
    sqlite.close();
    const found = await memprefix.run(["check", memprefix.dataDir]);
    expect(found).toMatchObject({ code: 1, stderr: "" });
    expect(found.stdout).toContain(
      'memprefix.db: user "default" "ada": record 1 of scope 1: its checksum is another\'s',
    );
  });
});
