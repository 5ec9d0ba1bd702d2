import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readSettings } from "../../src/cli/settings.js";
import { childOutput } from "../child-output.js";
import { type AgentEngine, agentEngine, ENGINE_REPORTS, ODD_REPORTS } from "../clients/agent-engine.js";
import { endingWithUs } from "../ending-children.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { storedExchanges } from "../http/routes/stored-rows.js";
import { type StartedApp, startApp } from "../http/server/started-app.js";
import { standIn } from "../stand-in.js";
import { readPages, samplesOf } from "./pages.js";

const HAS_PYTHON = spawnSync("python3", ["--version"]).status === 0;
const SKIPPED = HAS_PYTHON ? "" : " (skipped: there is no python3)";

const samples = readPages()
  .flatMap(samplesOf)
  .filter(({ language }) => language === "python");
const onPage = samplesOf(readPages().find(({ path }) => path === "docs/python.md") ?? { path: "", text: "" });
/** The samples that are files, by the name in their first line. */
const files = new Map(
  onPage.flatMap(({ text }) => {
    const [, name] = /^# (\w+\.py)\n/.exec(text) ?? [];
    return name === undefined ? [] : [[name, text]];
  }),
);
const printed = onPage.find(({ language }) => language === "text")?.text;

describe.skipIf(!HAS_PYTHON)(`every sample in Python${SKIPPED}`, () => {
  it.each(samples.map(({ page, line, text }) => [`${page}:${line}`, text]))("%s is Python", (_place, text) => {
    const parsed = spawnSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], { input: text });
    expect({ status: parsed.status, stderr: parsed.stderr.toString() }).toEqual({ status: 0, stderr: "" });
  });
});

describe.skipIf(!HAS_PYTHON)(`docs/python.md, with this machine's Python${SKIPPED}`, () => {
  let folder = "";
  let engine: AgentEngine;
  let app: StartedApp;
  const found = answeringSource(["Ana has a dog."]);
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "memprefix-python-"));
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
    engine = await agentEngine();
    const settings = readSettings({ MEMPREFIX_DATA_DIR: join(folder, "data"), MEMPREFIX_SOURCE: "none" });
    app = await startApp(settings, found, { log: [], faults: [] });
  });
  afterEach(async () => {
    await app.close();
    await engine.close();
    rmSync(folder, { recursive: true });
  });

  /** Runs a program in the folder, against a service at an address. */
  async function run(program: string, url: string) {
    const environment = {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      OPENAI_BASE_URL: engine.url,
      MEMPREFIX_URL: url,
    };
    const child = spawn("python3", [program], { cwd: folder, env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const output = childOutput(endingWithUs(child));
    const [code] = (await once(child, "close")) as [number];
    return { code, ...output };
  }

  const requests = () => storedExchanges(join(folder, "data", "memprefix.db")).requests;
  const sent = () => engine.served.map(({ asked }) => asked.prompt);

  it("has a client of some thirty lines", () => {
    const lines = (files.get("memprefix_client.py") ?? "").split("\n").filter((line) => line.trim() !== "");
    expect(lines.length).toBeLessThanOrEqual(36);
  });

  it("has a program that prints what the page shows; its prompts begin with those before, and usage is reported", async () => {
    expect(await run("trip.py", app.base)).toEqual({ code: 0, stdout: printed, stderr: "" });
    for (const [at, prompt] of sent().entries()) {
      const before = engine.served[at - 1];
      if (before === undefined) continue;
      expect(prompt.slice(0, before.asked.prompt.length)).toEqual(before.asked.prompt);
      expect(engine.served[at]?.counted.cached).toBeGreaterThanOrEqual(before.counted.prompt - 1);
    }
    const last = sent().at(-1)?.join("\n") ?? "";
    expect(["vegetarian", "Lisbon", "modern art"].map((fact) => last.split(fact).length - 1)).toEqual([1, 1, 1]);
    const reported = engine.served.map(({ headers, counted }) => {
      const row = requests().find(({ id }) => id === headers["x-request-id"]);
      return { counted, observed: row?.observed };
    });
    expect(reported).toHaveLength(3);
    for (const { counted, observed } of reported)
      expect(observed).toMatchObject({ promptTokens: counted.prompt, cachedTokens: counted.cached });
  });

  const LESS = [...ENGINE_REPORTS.filter((reports) => reports !== "all"), ...ODD_REPORTS];
  it.each(LESS)("has a program that runs where the engine reports %s", async (reports) => {
    await engine.close();
    engine = await agentEngine(reports);
    const { code, stdout, stderr } = await run("trip.py", app.base);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe((printed ?? "").replace(/\(.*?\)/g, "(not reported)"));
    expect(requests().map(({ observed }) => observed)).toEqual([null, null, null]);
  });

  /** A network in front of memprefix. `loses` says what it loses, by the ids of all composes so far, and which of them is asked for. */
  async function network(loses: (ids: readonly string[]) => "request" | "answer" | "nothing") {
    const ids: string[] = [];
    const url = await standIn(async (incoming, response) => {
      const body = Buffer.concat(await incoming.toArray());
      if (incoming.url === "/compose") ids.push((JSON.parse(body.toString()) as { request_id: string }).request_id);
      const lost = incoming.url === "/compose" ? loses(ids) : "nothing";
      if (lost === "request") return response.destroy();
      const headers = { "content-type": "application/json" };
      const answer = await fetch(`${app.base}${incoming.url}`, { method: "POST", headers, body });
      const text = await answer.text();
      return lost === "answer" ? response.destroy() : response.writeHead(answer.status, headers).end(text);
    });
    return { url, ids };
  }

  it("has a client that repeats what got no answer by the same id: nothing is composed twice", async () => {
    const { url, ids } = await network((all) =>
      all.indexOf(all.at(-1) ?? "") === all.length - 1 ? "answer" : "nothing",
    );
    const { code, stdout, stderr } = await run("trip.py", url);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(printed);
    expect(ids).toHaveLength(6);
    expect(new Set(ids).size).toBe(3);
    expect(requests()).toHaveLength(3);
  });

  it("has a client whose next prompt begins with what was composed before a turn that was not", async () => {
    const { url } = await network((all) => (new Set(all).size === 2 ? "request" : "nothing"));
    expect(await run("trip.py", url)).toMatchObject({ code: 0, stderr: expect.stringMatching(/^.+\n$/) });
    const [first = [], second = [], third = []] = sent();
    expect(second.join("\n")).not.toContain("memories");
    expect(third.slice(0, first.length)).toEqual(first);
    expect(third[3]).toEqual(second[3]);
    expect(["vegetarian", "Lisbon", "modern art"].every((fact) => third.join("\n").includes(fact))).toBe(true);
  });

  it.each([
    ["is not there", "http://127.0.0.1:1"],
    ["answers with an error", 500],
    ["answers with something else", 200],
    ["is silent", null],
  ])("has a client that fails open: where memprefix %s the engine gets plain messages", async (_how, instead) => {
    const url =
      typeof instead === "string"
        ? instead
        : await standIn((_incoming, response) => {
            if (instead !== null) response.writeHead(instead).end("<html>");
          });
    writeFileSync(
      join(folder, "trip.py"),
      (files.get("trip.py") ?? "").replace('.get("MEMPREFIX_API_KEY"))', '.get("MEMPREFIX_API_KEY"), timeout=0.2)'),
    );
    const { code, stdout, stderr } = await run("trip.py", url);
    expect({ code, answers: stdout.match(/^Noted: /gm)?.length }).toEqual({ code: 0, answers: 3 });
    expect(stderr.trimEnd().split("\n")).toHaveLength(3);
    expect(sent().at(-1)).toHaveLength(6);
    expect(sent().flat().join("\n")).not.toContain("memories");
  });

  it("has a client whose requests without memories are searched for", async () => {
    const program = `from memprefix_client import Memprefix
composed = Memprefix("${app.base}").compose("ana", [{"role": "user", "content": "Who is with Ana?"}], top_k=3)
print(composed["messages"][0]["content"])
`;
    writeFileSync(join(folder, "search.py"), program);
    const { stdout } = await run("search.py", app.base);
    expect(stdout).toBe("<memories>\n- Ana has a dog.\n</memories>\n\nWho is with Ana?\n");
    expect(found.queries.at(-1)).toMatchObject({ query: "Who is with Ana?", topK: 3 });
  });
});
