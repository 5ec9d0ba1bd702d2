import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { launch, listening } from "../cli/launch.js";
import { type AgentEngine, agentEngine } from "../clients/agent-engine.js";
import { ROOT, readPages, samplesOf } from "../docs/pages.js";
import { temporaryFolder } from "../temporary-folders.js";

const run = promisify(execFile);
const INSTALL_MS = 600_000;
const PROGRAM_MS = 120_000;
const PYTHON = join(ROOT, "python");

const page = samplesOf(readPages().find(({ path }) => path === "docs/python.md") ?? { path: "", text: "" });
/** What the page has a reader install, and what its tests need. */
const INSTALLED = [
  ...page.flatMap(({ language, text }) => (language === "sh" ? [text.trim()] : [])),
  'pip install "./python[test]"',
];
/** The page's programs, each with what it prints. */
const programs = page.flatMap(({ text }, at) => {
  const [, name] = /^# (\w+\.py)\n/.exec(text) ?? [];
  return name === undefined ? [] : [{ name, text, printed: page[at + 1]?.text }];
});

describe("the package for Python, with the built service", () => {
  const folder = temporaryFolder();
  const path = [join(folder, "venv/bin"), process.env["PATH"]].join(delimiter);
  const own = { PATH: path, HOME: folder, PYTHONDONTWRITEBYTECODE: "1" };
  let environment: Readonly<Record<string, string>> = own;
  let missing = "";
  let engine: AgentEngine;
  let service: ReturnType<typeof launch>;
  beforeAll(async () => {
    engine = await agentEngine();
    service = launch(["serve"], {
      ...own,
      MEMPREFIX_DATA_DIR: join(folder, "data"),
      MEMPREFIX_PORT: "0",
      MEMPREFIX_UPSTREAM_URL: engine.url,
    });
    const url = await listening(service);
    environment = { ...own, MEMPREFIX_URL: url, OPENAI_BASE_URL: engine.url, OPENAI_API_KEY: "none" };
    if (spawnSync("python3", ["--version"]).status !== 0) {
      missing = "there is no python3";
      return;
    }
    try {
      await run("python3", ["-m", "venv", join(folder, "venv")]);
      const quiet = { ...own, PIP_QUIET: "1", PIP_NO_COMPILE: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1" };
      // As a reader types them, in a clone.
      await run("sh", ["-ec", INSTALLED.join("\n")], { cwd: ROOT, env: quiet, timeout: INSTALL_MS });
    } catch (error) {
      missing = `pip could not install the package: ${String(error).slice(-300)}`;
    }
  }, INSTALL_MS);
  afterAll(async () => {
    service.child.kill("SIGTERM");
    await service.ended;
    await engine.close();
  });

  /** Runs a command of the environment. */
  async function ran(context: TestContext, command: string, args: readonly string[], cwd: string) {
    if (missing !== "") context.skip(missing);
    return new Promise<{ code: number; output: string }>((done) => {
      execFile(command, args, { cwd, env: environment, timeout: PROGRAM_MS }, (error, stdout, stderr) =>
        done({ code: Number(error?.code ?? 0), output: stdout + stderr }),
      );
    });
  }

  it("is typed without a gap", async (context) => {
    const args = ["--cache-dir", join(folder, "mypy"), "src"];
    expect(await ran(context, "mypy", args, PYTHON)).toMatchObject({ code: 0 });
  });

  it("does what its own tests say", async (context) => {
    const { code, output } = await ran(context, "pytest", [], PYTHON);
    expect(output).toMatch(/\d+ passed/);
    expect({ code, output }).toMatchObject({ code: 0 });
  });

  it.for(programs)("has a page whose $name prints what the page shows", async ({ name, text, printed }, context) => {
    engine.clear();
    writeFileSync(join(folder, name), text);
    expect(await ran(context, "python", [name], folder)).toEqual({ code: 0, output: printed });
  });
});
