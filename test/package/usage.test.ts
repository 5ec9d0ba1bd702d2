import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { installedPackage } from "./installed-package.js";

describe("an installed memstem", () => {
  const memstem = installedPackage();
  const json = (text: string) => JSON.parse(text) as unknown;

  it("composes in-process, and goes on after it was opened again", async () => {
    memstem.write(
      "library.js",
      `
      import { createMemstem, InvalidRequestError } from "memstem";
      const prompts = [];
      const history = [];
      for (const [question, memories] of [["Where?", ["in Paris"]], ["Why?", ["in Paris", "for love"]]]) {
        const memstem = createMemstem({ dataDir: "library-data", source: { kind: "none" } });
        history.push({ role: "user", content: question });
        const found = { results: memories.map((memory) => ({ id: memory, memory })) };
        const { messages } = await memstem.compose({ userId: "ada", conversationId: "c", messages: history, memories: found, retention: "keep" });
        prompts.push(messages);
        history.push({ role: "assistant", content: "So." });
        const refused = await memstem.compose({ userId: "", query: "x" }).catch((error) => error);
        if (!(refused instanceof InvalidRequestError)) throw refused;
        await memstem.close();
      }
      console.log(JSON.stringify(prompts));
      `,
    );
    const { code, stdout, stderr } = await memstem.node(["library.js"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const first = { role: "user", content: "<memories>\n- in Paris\n</memories>\n\nWhere?" };
    expect(json(stdout)).toEqual([
      [first],
      [
        first,
        { role: "assistant", content: "So." },
        {
          role: "user",
          content: "<memories>\n- for love\n</memories>\nMost relevant: in Paris\n\nWhy?",
        },
      ],
    ]);
  });

  it("has a core that composes from what it is given", async () => {
    memstem.write(
      "core.js",
      `
      import {
        compose, DEFAULT_ANNOTATIONS, DEFAULT_SCOPE_BOUNDS, EMPTY_SCOPE, ENGINE_MODELS, KEEPS_ALL, prefixExact, ScopeState,
      } from "memstem/core";
      const state = new ScopeState(EMPTY_SCOPE, (text) => text.length, DEFAULT_SCOPE_BOUNDS);
      const { messages } = compose(state, {
        conversation: null,
        messages: [{ role: "user", content: "Where?" }],
        memories: [{ id: "m-1", text: "in Paris" }],
        policy: prefixExact,
        residency: KEEPS_ALL,
        now: 0,
        memoryBudgetTokens: null,
        retention: "keep",
        engine: ENGINE_MODELS.gpu,
        annotations: DEFAULT_ANNOTATIONS,
        countTokens: (text) => text.length,
        isOurs: () => false,
      });
      console.log(JSON.stringify(messages));
      `,
    );
    const { code, stdout } = await memstem.node(["core.js"]);
    expect(code).toBe(0);
    expect(json(stdout)).toEqual([{ role: "user", content: "<memories>\n- in Paris\n</memories>\n\nWhere?" }]);
  });

  it("has no other doors than its exports", async () => {
    memstem.write("inside.js", 'await import("memstem/dist/store/database/open-database.js");');
    expect((await memstem.node(["inside.js"])).stderr).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
    memstem.write(
      "manifest.js",
      'import it from "memstem/package.json" with { type: "json" }; console.log(it.version);',
    );
    expect((await memstem.node(["manifest.js"])).stdout).toBe(`${memstem.version}\n`);
  });

  it("runs as a command, with its migrations and its sample found", async () => {
    const bin = join(memstem.folder, "node_modules/.bin/memstem");
    expect(await memstem.node([bin, "--version"])).toEqual({ code: 0, stdout: `${memstem.version}\n`, stderr: "" });
    const input = JSON.stringify({ user_id: "ada", query: "Where?", memories: [{ id: "m-1", memory: "in Paris" }] });
    const composed = await memstem.node([bin, "compose"], input);
    expect({ code: composed.code, stderr: composed.stderr }).toEqual({ code: 0, stderr: "" });
    expect(json(composed.stdout)).toMatchObject({ blocks: [{ label: 1, memory_id: "m-1" }] });
    expect(existsSync(join(memstem.folder, "memstem-data/memstem.db"))).toBe(true);
  });

  it("serves", async () => {
    const env = { PATH: process.env["PATH"] ?? "", HOME: memstem.folder, MEMSTEM_PORT: "0", MEMSTEM_SOURCE: "none" };
    const bin = join(memstem.folder, "node_modules/.bin/memstem");
    const service = spawn(process.execPath, [bin, "serve"], {
      cwd: memstem.folder,
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    try {
      const address = await new Promise<string>((listens) => {
        service.stdout.setEncoding("utf8").on("data", (text: string) => {
          const [, found] = /listens on (\S+)\n/.exec(text) ?? [];
          if (found !== undefined) listens(found);
        });
      });
      const answer = await fetch(`${address}/healthz`, { headers: { connection: "close" } });
      expect(await answer.json()).toEqual({ status: "ok", version: memstem.version, source: null });
    } finally {
      const ended = new Promise((resolve) => service.once("exit", resolve));
      service.kill("SIGTERM");
      expect(await ended).toBe(0);
    }
  });
});
