import { execFile, spawn } from "node:child_process";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { childOutput } from "../child-output.js";
import { type AgentEngine, agentEngine } from "../clients/agent-engine.js";
import { brokenPrefixes } from "../clients/checked-prompts.js";
import { endingWithUs } from "../ending-children.js";
import { MEM0_KEY, platformWith } from "../memory/mem0-platform.js";
import type { WireServer } from "../memory/mem0-wire-server.js";
import { installedPackage } from "../package/installed-package.js";
import { temporaryFolders } from "../temporary-folders.js";
import { ROOT, readPages, type Sample, samplesOf } from "./pages.js";
import { runningService } from "./running-service.js";

const run = promisify(execFile);
const INSTALL_MS = 600_000;

const samples = readPages().flatMap(samplesOf);
const sampleOf = (name: string, language: string): Sample => {
  const found = samples.find((sample) => sample.page === `docs/${name}.md` && sample.language === language);
  if (found === undefined) throw new Error(`docs/${name}.md has no sample in ${language}`);
  return found;
};

/** The commands of a page's first sample: what installs, and what starts the program or the service. */
function commandsOf(name: string): readonly [install: string, start: string] {
  const [install = "", start = ""] = sampleOf(name, "sh").text.split("\n");
  return [install, start];
}

/** `test/python/python-package.test.ts` does the same for docs/python.md. */
describe("a page of a framework, followed in an empty folder", () => {
  const memprefix = installedPackage();
  const service = runningService();
  const newFolder = temporaryFolders();
  let engine: AgentEngine;
  let platform: WireServer;
  beforeAll(async () => {
    ({ server: platform } = await platformWith("Ana is vegetarian."));
  });
  afterAll(() => platform.close());
  beforeEach(async () => {
    engine = await agentEngine();
  });
  afterEach(() => engine.close());

  const environment = (folder: string) => ({
    ...{ PATH: process.env["PATH"] ?? "", HOME: folder, MEMPREFIX_PORT: "0" },
    ...{ MEMPREFIX_URL: `http://127.0.0.1:${service.port}`, MEM0_HOST: platform.url, MEM0_API_KEY: MEM0_KEY },
    ...{ OPENAI_BASE_URL: engine.url, OPENAI_API_KEY: "the engine's", OPENAI_AGENTS_DISABLE_TRACING: "1" },
    ...{ MEM0_TELEMETRY: "false", MASTRA_TELEMETRY_DISABLED: "1" },
  });

  /** A new folder after the page's install line. */
  async function installed(name: string): Promise<string> {
    const folder = newFolder();
    const [install] = commandsOf(name);
    expect(install).toContain("npm install memprefix ");
    const packed = install.replace("npm install memprefix ", `npm install ${memprefix.archive} `);
    // The project's better-sqlite3 is taken, because compiling it takes minutes.
    // Frameworks that require a newer Node than this one are warned of, as by default.
    const env = { ...process.env, npm_config_ignore_scripts: "true", npm_config_engine_strict: "false" };
    await run("sh", ["-ec", packed], { cwd: folder, env, timeout: INSTALL_MS });
    const sqlite = join(folder, "node_modules/better-sqlite3");
    rmSync(sqlite, { recursive: true });
    symlinkSync(join(ROOT, "node_modules/better-sqlite3"), sqlite);
    return folder;
  }

  function begin(command: string, folder: string) {
    // A group of its own: npx does not pass signals on.
    const child = spawn("sh", ["-ec", command], { cwd: folder, env: environment(folder), detached: true });
    const output = childOutput(endingWithUs(child));
    const ended = new Promise<number | null>((end) => child.once("close", end));
    return { child, output, ended };
  }

  /** What the page's program printed. */
  async function printedBy(name: string): Promise<string> {
    const folder = await installed(name);
    const [, start] = commandsOf(name);
    const [, file = ""] = /^npx tsx (\w+\.mts)$/.exec(start) ?? [];
    writeFileSync(join(folder, file), sampleOf(name, "ts").text);
    const { output, ended } = begin(start, folder);
    expect({ code: await ended, output }).toMatchObject({ code: 0 });
    return output.stdout;
  }

  it.each(["ai-sdk", "langchain", "mastra", "mem0", "openai-agents"])(
    "docs/%s.md has two answers, from prompts that begin with each other and have the memory once",
    { timeout: INSTALL_MS },
    async (name) => {
      const printed = await printedBy(name);
      expect(printed.match(/^Noted: /gm)).toHaveLength(2);
      expect(engine.served.length).toBeGreaterThan(1);
      expect(brokenPrefixes(engine.served, [])).toEqual([]);
      const last = JSON.stringify(engine.served.at(-1)?.asked.prompt);
      expect(last.split("- Ana is vegetarian.")).toHaveLength(2);
    },
  );

  it("docs/client.md has a composed prompt", { timeout: INSTALL_MS }, async () => {
    expect(await printedBy("client")).toMatch(/^<memories>\n- Ana is vegetarian\./);
  });

  it("docs/mcp.md has a service with its tools", { timeout: INSTALL_MS }, async () => {
    const folder = await installed("mcp");
    const [, start] = commandsOf("mcp");
    const { child, output, ended } = begin(start, folder);
    const stop = () => process.kill(-(child.pid ?? 0), "SIGTERM");
    onTestFinished(() => void (child.exitCode ?? stop()));
    const port = await vi.waitFor(
      () => /listens on \S+:(\d+)\n/.exec(output.stdout)?.[1] ?? expect.fail("not yet"),
      30_000,
    );
    const call = samples.find((sample) => sample.page === "docs/mcp.md" && sample.text.startsWith("curl"));
    const answer = await run("sh", ["-ec", (call?.text ?? "").replace("localhost:4600", `127.0.0.1:${port}`)]);
    expect(answer.stdout).toBe(call?.shown);
    stop();
    await ended;
  });
});
