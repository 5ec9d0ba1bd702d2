import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { Choices, memoryOf } from "../crash/actors.js";
import { ask, GONE, servicesAt } from "../crash/answers.js";
import { commands, type Ended } from "./memstem-command.js";
import type { Listening } from "./own-directories.js";

const at = ({ address }: Listening<Ended>) => servicesAt(() => address);

describe("memstem backup", () => {
  const memstem = commands();

  it("copies the directory of a service under load; the copy is sound, and restored it has every answer of before", async () => {
    const service = await memstem.serve();
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
    const copy = join(memstem.root, "copy");
    const made = await memstem.run(["backup", copy]);
    expect(made).toMatchObject({ code: 0, stderr: "", stdout: `${memstem.dataDir} is copied to ${copy}\n` });
    const checkedLive = await memstem.run(["check"]);
    isLoaded = false;
    await loading;
    expect(answers.size).toBeGreaterThan(before.length);
    expect(checkedLive).toMatchObject({ code: 0, stderr: "" });
    expect(checkedLive.stdout).toMatch(
      /^memstem\.db: 3 scopes, \d+ requests: nothing is wrong\nusage\.db: figures of \d+ prompts: nothing is wrong\n$/,
    );
    expect(readdirSync(copy).sort()).toEqual(["memstem.db", "usage.db"]);
    const checked = await memstem.run(["check", copy]);
    expect(checked).toMatchObject({ code: 0, stderr: "" });
    const [, requests] = /(\d+) requests: nothing is wrong/.exec(checked.stdout) ?? [];
    expect(Number(requests)).toBeGreaterThanOrEqual(before.length);

    service.kill("SIGTERM");
    await service.ended;
    rmSync(memstem.dataDir, { recursive: true });
    renameSync(copy, memstem.dataDir);
    const restored = await memstem.serve();
    for (const { body, text } of before) expect(await ask(at(restored), "POST", "/compose", body)).toBe(text);
  });

  it("takes the embedded Mem0's memories along", async () => {
    const service = await memstem.serve({ MEMSTEM_SOURCE: "embedded", MEMSTEM_SEARCH_TIMEOUT_MS: "600000" });
    const headers = { "content-type": "application/json" };
    const added = await fetch(`${service.address}/memories`, {
      method: "POST",
      headers,
      body: JSON.stringify({ user_id: "ada", memories: ["Ada drinks green tea"] }),
    });
    expect(added.status, await added.text()).toBe(201);
    const copy = join(memstem.root, "copy");
    expect(await memstem.run(["backup", copy])).toMatchObject({ code: 0, stderr: "" });
    expect((await memstem.run(["check", copy])).stdout).toContain("mem0/vectors.db: memories: nothing is wrong\n");
    service.kill("SIGTERM");
    await service.ended;
    const environment = { MEMSTEM_SOURCE: "embedded", MEMSTEM_DATA_DIR: copy, MEMSTEM_SEARCH_TIMEOUT_MS: "600000" };
    const restored = await memstem.serve(environment);
    const found = await ask(at(restored), "POST", "/compose", {
      user_id: "ada",
      query: "Which tea does Ada drink?",
    });
    expect(found).toContain("Ada drinks green tea");
  });

  it("takes the dashboard's figures along, and goes without them where they are damaged", async () => {
    const service = await memstem.serve();
    const compose = (id: string) =>
      ask(at(service), "POST", "/compose", { user_id: "ada", request_id: id, query: "Well?", memories: [] });
    const summary = (of: Listening<Ended>) => ask(at(of), "GET", "/usage/summary", undefined);
    await compose("r1");
    expect(await summary(service)).toContain('"prompts":1');
    const copy = join(memstem.root, "copy");
    expect(await memstem.run(["backup", copy])).toMatchObject({ code: 0, stderr: "" });
    await compose("r2");
    expect(await summary(service)).toContain('"prompts":2');
    service.kill("SIGTERM");
    await service.ended;
    const restored = await memstem.serve({ MEMSTEM_DATA_DIR: copy });
    expect(await summary(restored)).toContain('"prompts":1');
    restored.kill("SIGTERM");
    await restored.ended;

    writeFileSync(join(memstem.dataDir, "usage.db"), "This is no database. ".repeat(500));
    const checked = await memstem.run(["check"]);
    expect(checked).toMatchObject({ code: 1, stderr: "" });
    expect(checked.stdout).toContain("memstem.db: 1 scopes, 2 requests: nothing is wrong\nusage.db: ");
    const without = join(memstem.root, "without");
    const made = await memstem.run(["backup", without]);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).toMatch(/^usage\.db is damaged, and not in the copy\n/);
    expect(readdirSync(without)).toEqual(["memstem.db"]);
  });

  it("overwrites nothing, and says what it misses", async () => {
    const service = await memstem.serve();
    const taken = join(memstem.root, "taken");
    writeFileSync(taken, "somebody's");
    expect(await memstem.run(["backup", taken])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `memstem: cannot copy to ${taken}: it exists already\n`,
    });
    expect(readFileSync(taken, "utf8")).toBe("somebody's");
    service.kill("SIGTERM");
    await service.ended;
    const environment = { MEMSTEM_DATA_DIR: join(memstem.root, "nothing") };
    for (const args of [["backup", join(memstem.root, "new")], ["check"]]) {
      const refused = await memstem.run(args, { environment });
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(
        /^memstem: cannot open the database .*nothing\/memstem\.db: there is no such file\n$/,
      );
    }
    expect(existsSync(join(memstem.root, "new"))).toBe(false);
  });

  it("says in a line that the copy's directory cannot be made", async () => {
    const service = await memstem.serve();
    service.kill("SIGTERM");
    await service.ended;
    writeFileSync(join(memstem.root, "file"), "");
    const places = [join(memstem.root, "file", "copy"), ...(existsSync("/proc/self/status") ? ["/proc/copy"] : [])];
    for (const place of places) {
      const refused = await memstem.run(["backup", place]);
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^memstem: cannot copy to .*: (ENOTDIR|ENOENT): .*\n$/);
    }
    const nowhere = await memstem.run(["backup", ""]);
    expect(nowhere).toMatchObject({
      code: 1,
      stdout: "",
      stderr: 'memstem: cannot copy to "": it names no directory\n',
    });
  });
});

describe("memstem check", () => {
  const memstem = commands();

  it("says what is wrong, and ends with 1", async () => {
    const service = await memstem.serve();
    const body = { user_id: "ada", request_id: "r", query: "Well?", memories: [memoryOf("ada", 0)] };
    await ask(at(service), "POST", "/compose", body);
    service.kill("SIGTERM");
    await service.ended;
    expect(await memstem.run(["check"])).toMatchObject({
      code: 0,
      stdout: "memstem.db: 1 scopes, 1 requests: nothing is wrong\nusage.db: figures of 1 prompts: nothing is wrong\n",
      stderr: "",
    });
    const sqlite = new Database(join(memstem.dataDir, "memstem.db"));
    sqlite.exec("update journal set changes = replace(changes, 'a', 'b')");
    sqlite.close();
    const found = await memstem.run(["check", memstem.dataDir]);
    expect(found).toMatchObject({ code: 1, stderr: "" });
    expect(found.stdout).toContain('memstem.db: user "default" "ada": record 1 of scope 1: its checksum is another\'s');
  });
});
