import { execFile, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, type TestContext } from "vitest";
import { ROOT } from "../docs/pages.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { standIn } from "../stand-in.js";
import { firstCommands, strangers } from "./plugin-page.js";

const run = promisify(execFile);
const INSTALL_MS = 600_000;
const PAGE = "examples/hermes/README.md";
const KEY = "k".repeat(32);
const QUESTIONS = ["Where should we eat?", "And tomorrow?", "And after that?"];
const FACTS = ["Ana is vegetarian.", "Ana is in Lisbon.", "Ana loves art."];

/** The page's first commands: what is installed, and what sets it up. */
const [installing = "", ...settingUp] = firstCommands(PAGE);

/** Hermes' own loader and manager of providers, driven as its agent drives them; what it prints is what each step gave and what was logged. */
const PROGRAM = `import json, logging, os, sys
from agent.memory_manager import MemoryManager
from plugins.memory import load_memory_provider
logged = []
class Log(logging.Handler):
    def emit(self, record): logged.append(record.getMessage())
logging.getLogger().addHandler(Log(logging.WARNING))
asked = json.load(sys.stdin)
manager = MemoryManager()
manager.add_provider(load_memory_provider("memprefix"))
manager.initialize_all(session_id="s1", **asked["session"])
given = []
for step, *values in asked["steps"]:
    if step == "ask":
        given.append(manager.prefetch_all(values[0]))
        manager.sync_all(values[0], "Indeed.", session_id="s1")
    elif step == "switch":
        manager.on_session_switch(values[0], **values[1])
    manager.flush_pending(5)
print(json.dumps({"given": given, "logged": logged}))
`;

/** One step of the program: a question, or a change of the session as Hermes tells it. */
type Step = readonly ["ask", string] | readonly ["switch", string, object];

interface Outcome {
  readonly given: readonly string[];
  readonly logged: readonly string[];
}

describe("examples/hermes, in Hermes Agent itself", { timeout: 300_000 }, () => {
  let packages = "";
  let missing = "";
  let home = "";
  beforeAll(async () => {
    packages = mkdtempSync(join(tmpdir(), "memprefix-hermes-"));
    if (spawnSync("python3.11", ["--version"]).status !== 0) {
      missing = "there is no python3.11";
      return;
    }
    try {
      await run("python3.11", ["-m", "venv", join(packages, "venv")]);
      const env = { ...process.env, PIP_NO_COMPILE: "1" };
      await run(join(packages, "venv/bin/python"), ["-m", ...installing.split(" ")], { env, timeout: INSTALL_MS });
    } catch {
      missing = `${installing} does not work here`;
    }
  }, INSTALL_MS + 60_000);
  afterAll(() => rmSync(packages, { recursive: true }));

  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({ source: () => source });
  beforeEach(async () => {
    // A process's first prompt takes longer, on a busy machine longer than an agent waits.
    await app.compose({ user_id: "warm-up", query: "Ready?" });
    source.queries.length = 0;
    source.failure = null;
    source.found = [FACTS[0] ?? ""];
    home = mkdtempSync(join(packages, "home-"));
    mkdirSync(join(home, ".hermes"));
    const model = {
      default: "stub-1",
      provider: "custom",
      base_url: engine.url,
      api_key: "none",
      context_length: 200_000,
    };
    writeFileSync(join(home, ".hermes/config.yaml"), JSON.stringify({ model }));
    if (missing === "") for (const command of settingUp) await shell(command);
    appendFileSync(join(home, ".hermes/.env"), `MEMPREFIX_URL=${app.base}\n`);
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const environment = () => ({ HOME: home, PATH: [join(packages, "venv/bin"), process.env["PATH"]].join(delimiter) });

  async function shell(command: string): Promise<string> {
    return (await run("sh", ["-c", command], { cwd: ROOT, env: environment(), timeout: 120_000 })).stdout;
  }

  /** Has Hermes' manager of providers go through the steps. */
  async function steps(
    context: TestContext,
    asked: readonly Step[],
    settings: object = {},
    session: object = {},
  ): Promise<Outcome> {
    if (missing !== "") context.skip(missing);
    const file = join(home, "program.py");
    writeFileSync(file, PROGRAM);
    const env = { ...environment(), MEMPREFIX_URL: app.base, MEMPREFIX_USER: "ana", ...settings };
    const running = run("python", [file], { cwd: home, env, timeout: 120_000 });
    running.child.stdin?.end(JSON.stringify({ session: { platform: "cli", ...session }, steps: asked }));
    return JSON.parse((await running).stdout) as Outcome;
  }

  it("is available after the commands of the page", async (context) => {
    if (missing !== "") context.skip(missing);
    expect(await shell("hermes memory status")).toMatch(/Provider: {2}memprefix[\s\S]*available ✓/);
  });

  it("has prompts that begin with those before, each memory once, and transcripts without memories, over three processes", async (context) => {
    if (missing !== "") context.skip(missing);
    for (const [at, question] of QUESTIONS.entries()) {
      source.found = FACTS.slice(0, at + 1).toReversed();
      const { stdout } = await run("hermes", ["chat", "-Q", ...(at === 0 ? [] : ["--continue"]), "-q", question], {
        ...{ cwd: home, env: { ...environment(), LC_ALL: "C.UTF-8" }, timeout: 120_000 },
      });
      expect(stdout).toContain("Indeed.");
    }
    const prompts = engine.requests
      .filter(({ url }) => url.endsWith("/chat/completions"))
      .map(({ body }) => body.messages);
    expect(prompts.map((prompt) => prompt.filter(({ role }) => role === "user").length)).toEqual([1, 2, 3]);
    for (const [at, prompt] of prompts.entries()) {
      expect(prompt.slice(0, prompts[at - 1]?.length ?? 0)).toEqual(prompts[at - 1] ?? []);
      const text = JSON.stringify(prompt);
      expect(FACTS.map((fact) => text.split(fact).length - 1)).toEqual(FACTS.map((_, of) => (of <= at ? 1 : 0)));
      expect(String(prompt.at(-1)?.content)).toContain(FACTS[at]);
    }
    expect(source.queries.map(({ query, scope }) => [query, scope.userId])).toEqual(
      QUESTIONS.map((one) => [one, "ana"]),
    );
    const database = new Database(join(home, ".hermes/state.db"), { readonly: true });
    const rows = database.prepare("select content, api_content from messages where role = 'user'").all();
    database.close();
    expect(rows).toEqual(
      QUESTIONS.map((content, at) => ({
        content,
        api_content: prompts.at(-1)?.filter(({ role }) => role === "user")[at]?.content,
      })),
    );
    expect(existsSync(join(home, ".hermes/memprefix-conversations.json"))).toBe(false);
  });

  it("gives a memory again after its turn was cut, also to a session that is resumed", async (context) => {
    const asked: Step[] = [
      ["ask", "One?"],
      ["ask", "Two?"],
      ["switch", "s1", { rewound: true }],
      ["ask", "Three?"],
    ];
    expect(await steps(context, asked)).toEqual({ given: [memories(0), "", memories(0)], logged: [] });
    expect(await steps(context, [["ask", "Four?"]])).toEqual({ given: [""], logged: [] });
    const compressed = ["switch", "s1", { parent_session_id: "s1", reason: "compression" }] as const;
    expect(await steps(context, [compressed, ["ask", "Five?"]])).toEqual({ given: [memories(0)], logged: [] });
    expect(
      await steps(context, [
        ["switch", "s2", { reset: true }],
        ["ask", "Six?"],
      ]),
    ).toEqual({ given: [memories(0)], logged: [] });
  });

  it("gives a platform's user that user's memories, and a chat of several people none", async (context) => {
    const dm = { platform: "telegram", user_id: "7", chat_type: "dm" };
    expect((await steps(context, [["ask", "One?"]], {}, dm)).given).toEqual([memories(0)]);
    expect(source.queries.map(({ scope }) => scope.userId)).toEqual(["telegram:7"]);
    expect(await steps(context, [["ask", "One?"]], {}, { ...dm, chat_type: "group" })).toEqual({
      given: [""],
      logged: [],
    });
    expect(source.queries).toHaveLength(1);
  });

  it("says so where nobody is named, and asks for nobody's memories", async (context) => {
    const { given, logged } = await steps(
      context,
      [
        ["ask", "One?"],
        ["ask", "Two?"],
      ],
      { MEMPREFIX_USER: "" },
    );
    expect(given).toEqual(["", ""]);
    expect(logged).toEqual([expect.stringMatching(/^memprefix: nobody is named; set MEMPREFIX_USER/)]);
    expect(source.queries).toEqual([]);
  });

  const twice: readonly Step[] = [
    ["ask", "One?"],
    ["ask", "Two?"],
  ];
  const without = "; Hermes answers without memories until then";
  it("says once, in one sentence, that memprefix is down", async (context) => {
    const outcome = await steps(context, twice, { MEMPREFIX_URL: "http://127.0.0.1:9" });
    const sentence =
      "memprefix: http://127.0.0.1:9 did not answer ([Errno 111] Connection refused): start memprefix there, or set MEMPREFIX_URL";
    expect(outcome).toEqual({ given: ["", ""], logged: [sentence + without] });
  });

  it.for(strangers("MEMPREFIX_URL"))(
    "says once, in one sentence, that what is there %s",
    async ([_what, status, body, sentence], context) => {
      const url = await standIn((_incoming, response) => void response.writeHead(status).end(body));
      expect(await steps(context, twice, { MEMPREFIX_URL: url })).toEqual({
        given: ["", ""],
        logged: [`memprefix: ${url} ${sentence}${without}`],
      });
    },
  );

  it("gives a memory again whose answer was lost, as nobody saw it", async (context) => {
    let isLost = true;
    const url = await standIn(async (incoming, response) => {
      const body = Buffer.concat(await incoming.toArray());
      const { text } = await app.send("POST", "/compose", body);
      if (isLost) response.destroy();
      else response.end(text);
      isLost = false;
    });
    const { given, logged } = await steps(context, twice, { MEMPREFIX_URL: url });
    expect(given).toEqual(["", memories(0)]);
    expect(logged).toEqual([expect.stringContaining("did not answer")]);
  });

  describe("with API keys", () => {
    const keyed = servedApp({ source: () => source, environment: { MEMPREFIX_API_KEY: KEY } });
    it("takes the right one, and says once, in one sentence, that another is wrong", async (context) => {
      const settings = { MEMPREFIX_URL: keyed.base, MEMPREFIX_API_KEY: KEY };
      expect(await steps(context, [["ask", "One?"]], settings)).toEqual({ given: [memories(0)], logged: [] });
      const sentence = `memprefix: ${keyed.base} rejected the API key (401): set MEMPREFIX_API_KEY in Hermes' .env to one of its keys`;
      const wrong = await steps(context, twice, { ...settings, MEMPREFIX_API_KEY: "wrong" });
      expect(wrong).toEqual({ given: ["", ""], logged: [sentence + without] });
    });
  });
});

function memories(...found: readonly number[]): string {
  return `<memories>\n${found.map((at) => `- ${FACTS[at]}\n`).join("")}</memories>`;
}
