import { execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, type TestContext } from "vitest";
import { childOutput } from "../child-output.js";
import { ROOT } from "../docs/pages.js";
import { endingWithUs } from "../ending-children.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { standIn } from "../stand-in.js";
import { firstCommands, strangers } from "./plugin-page.js";

const run = promisify(execFile);
const INSTALL_MS = 900_000;
const COMMAND_MS = 300_000;
const PAGE = "examples/openclaw/README.md";
/** OpenClaw wants a newer Node than memprefix does. */
const NODE = { [`node-${process.platform}-${process.arch}`]: "24.16.0" };
const KEY = "k".repeat(32);
const FACTS = ["Ana is vegetarian.", "Ana is in Lisbon."];
const QUESTIONS = ["Where should we eat?", "And tomorrow?"];

/** The page's first commands: what is installed, and what sets it up. */
const [installing = "", ...settingUp] = firstCommands(PAGE);
const OPENCLAW = /openclaw@(\S+)/.exec(installing)?.[1] ?? "";

/**
 * The plugin's engine, asked by OpenClaw's own code. A line of its input is a configuration and turns, and registers the plugin anew; what
 * it prints is what each turn's prompt has, and what was logged.
 */
const PROGRAM = `import { createInterface } from "node:readline";
import { assembleHarnessContextEngine } from "openclaw/plugin-sdk/agent-harness-runtime";
import plugin from "./memprefix/index.js";
for await (const line of createInterface({ input: process.stdin })) {
  const { config, turns } = JSON.parse(line);
  const logged = [];
  let make;
  plugin.register({
    pluginConfig: config,
    logger: { warn: (line) => logged.push(line) },
    registerContextEngine: (_id, factory) => { make = factory; },
  });
  const assembled = [];
  for (const turn of turns) {
    const { messages } = await assembleHarnessContextEngine({
      contextEngine: make({}), sessionId: "s1", sessionKey: "agent:main:main", modelId: "stub-1",
      contextEngineHostSupport: { id: "openclaw-embedded", label: "here", capabilities: [] }, ...turn,
    });
    assembled.push(messages);
  }
  console.log("\\n" + JSON.stringify({ assembled, logged }));
}
process.exit(0);
`;

interface Turn {
  readonly messages: readonly object[];
  readonly prompt: string;
  readonly sessionKey?: string;
}

interface Outcome {
  readonly assembled: readonly (readonly object[])[];
  readonly logged: readonly string[];
}

describe("examples/openclaw, in OpenClaw itself", { timeout: COMMAND_MS }, () => {
  let packages = "";
  let missing = "";
  let home = "";
  beforeAll(async () => {
    packages = mkdtempSync(join(tmpdir(), "memprefix-openclaw-"));
    const dependencies = { openclaw: OPENCLAW, ...NODE };
    writeFileSync(join(packages, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
    const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
    try {
      await run("npm", ["install", "--ignore-scripts", "--engine-strict=false", ...quiet], { cwd: packages });
    } catch {
      missing = `npm could not install openclaw ${OPENCLAW}`;
    }
    cpSync(join(ROOT, "examples/openclaw/memprefix"), join(packages, "memprefix"), { recursive: true });
    writeFileSync(join(packages, "program.js"), PROGRAM);
  }, INSTALL_MS);
  afterAll(() => {
    program?.child.kill("SIGKILL");
    rmSync(packages, { recursive: true, maxRetries: 5 });
  });

  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({ source: () => source });
  beforeEach(async () => {
    // A process's first prompt takes longer, on a busy machine longer than an agent waits.
    await app.compose({ user_id: "warm-up", query: "Ready?" });
    source.queries.length = 0;
    source.found = [FACTS[0] ?? ""];
    home = mkdtempSync(join(packages, "home-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));

  const environment = () => ({
    HOME: home,
    PATH: [
      join(packages, "node_modules/.bin"),
      join(packages, "node_modules", Object.keys(NODE)[0] ?? "", "bin"),
      process.env["PATH"],
    ].join(delimiter),
  });

  async function shell(command: string): Promise<string> {
    const { stdout, stderr } = await run("sh", ["-c", command], { cwd: ROOT, env: environment(), timeout: COMMAND_MS });
    return stdout + stderr;
  }

  /** One for all tests: to load OpenClaw takes seconds. */
  let program: ReturnType<typeof startProgram> | undefined;
  function startProgram() {
    const env = { ...environment(), HOME: packages };
    const child = endingWithUs(spawn("node", [join(packages, "program.js")], { cwd: packages, env }));
    const output = childOutput(child);
    return {
      child,
      lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() as AsyncIterator<string, undefined>,
      errors: () => output.stderr,
    };
  }

  /** Has OpenClaw's code ask the plugin's engine. */
  async function turns(context: TestContext, asked: readonly Turn[], settings: object = {}): Promise<Outcome> {
    if (missing !== "") context.skip(missing);
    program ??= startProgram();
    const order = { config: { url: app.base, userId: "ana", ...settings }, turns: asked };
    program.child.stdin.write(`${JSON.stringify(order)}\n`);
    for (;;) {
      const { value } = await program.lines.next();
      if (value === undefined) throw new Error(`OpenClaw's code ended: ${program.errors()}`);
      if (value.startsWith('{"assembled":')) return JSON.parse(value) as Outcome;
    }
  }

  it(
    "has prompts that go on from those before up to the question, each memory once, and transcripts without memories; answers while memprefix is down",
    async (context) => {
      if (missing !== "") context.skip(missing);
      const stub = {
        id: "stub-1",
        name: "stub",
        reasoning: false,
        input: ["text"],
        contextWindow: 131_072,
        maxTokens: 8_192,
      };
      const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
      const local = { baseUrl: engine.url, apiKey: "none", api: "openai-completions", models: [{ ...stub, cost }] };
      mkdirSync(join(home, ".openclaw"));
      const agents = { defaults: { model: { primary: "local/stub-1" } } };
      writeFileSync(
        join(home, ".openclaw/openclaw.json"),
        JSON.stringify({ models: { providers: { local } }, agents }),
      );
      for (const command of settingUp) await shell(command);
      const ask = (question: string) => shell(`openclaw agent --local --session-id s1 -m '${question}'`);
      await shell(`openclaw config set plugins.entries.memprefix.config.url '${app.base}'`);
      for (const [at, question] of QUESTIONS.entries()) {
        source.found = FACTS.slice(0, at + 1).toReversed();
        const output = await ask(question);
        expect(output).toContain("Indeed.");
        expect(output).not.toContain("answers without memories");
      }
      const prompts = engine.requests
        .filter(({ url }) => url.endsWith("/chat/completions"))
        .map(({ body }) => body.messages);
      expect(prompts).toHaveLength(2);
      const [first = [], second = []] = prompts;
      // Behind the question stands what OpenClaw says of the moment.
      const upToQuestion = first.findIndex(({ content }) => String(content).endsWith(QUESTIONS[0] ?? "")) + 1;
      expect(upToQuestion).toBeGreaterThan(2);
      expect(second.slice(0, upToQuestion)).toEqual(first.slice(0, upToQuestion));
      const text = JSON.stringify(second);
      expect(FACTS.map((fact) => text.split(fact).length - 1)).toEqual([1, 1]);
      const asked = second.findIndex(({ content }) => String(content).endsWith(QUESTIONS[1] ?? ""));
      expect(second[asked - 1]).toEqual({ role: "user", content: memories(1) });
      expect(source.queries.map(({ query, scope }) => [query, scope.userId])).toEqual(
        QUESTIONS.map((one) => [one, "ana"]),
      );
      const database = new Database(join(home, ".openclaw/agents/main/agent/openclaw-agent.sqlite"), {
        readonly: true,
      });
      const transcript = JSON.stringify(database.prepare("select * from transcript_events").all());
      database.close();
      expect(transcript).toContain(QUESTIONS[1]);
      expect(transcript).not.toContain(FACTS[0]);

      await shell("openclaw config set plugins.entries.memprefix.config.url 'http://127.0.0.1:9'");
      const output = await ask("And then?");
      expect(output).toContain("Indeed.");
      expect(output).toContain("memprefix: http://127.0.0.1:9 did not answer (");
      expect(JSON.stringify(engine.requests.at(-1)?.body.messages)).not.toContain("<memories>");
    },
    4 * COMMAND_MS,
  );

  const said = (content: string) => ({ role: "user", content, timestamp: 1 });
  const answered = (text: string) => ({ role: "assistant", content: [{ type: "text", text }], timestamp: 2 });
  const called = {
    role: "assistant",
    content: [{ type: "toolCall", id: "c1", name: "look", arguments: {} }],
    timestamp: 2,
  };
  const result = {
    role: "toolResult",
    toolCallId: "c1",
    toolName: "look",
    content: [{ type: "text", text: "Open." }],
    timestamp: 3,
  };
  const section = { role: "user", content: memories(0) };

  it("leaves calls and results where they are, and gives earlier questions their memories again", async (context) => {
    const history = [said("One?"), called, result, answered("Yes.")];
    const { assembled, logged } = await turns(context, [
      { messages: [], prompt: "One?" },
      { messages: history, prompt: "Two?" },
    ]);
    expect(assembled).toEqual([[section], [section, ...history]]);
    expect(logged).toEqual([]);
  });

  it("gives memories to sessions of one person alone", async (context) => {
    const keys = ["telegram:group:-1", "discord:channel:7:thread:9", "subagent:x", "telegram:direct:7", "main"];
    const asked = keys.map((key, at) => ({ sessionKey: `agent:main:${key}`, messages: [], prompt: `${at}?` }));
    const { assembled, logged } = await turns(context, asked);
    expect(assembled.map(({ length }) => length)).toEqual([0, 0, 0, 1, 1]);
    expect(source.queries.map(({ scope }) => scope.userId)).toEqual(["telegram:7", "ana"]);
    expect(logged).toEqual([]);
  });

  const twice = QUESTIONS.map((prompt) => ({ messages: [], prompt }));
  const without = "; OpenClaw answers without memories until then";
  const nothing = [[], []];

  it("says so where nobody is named", async (context) => {
    const { assembled, logged } = await turns(context, twice, { userId: "" });
    expect({ assembled, queries: source.queries }).toEqual({ assembled: nothing, queries: [] });
    expect(logged).toEqual([expect.stringMatching(/^memprefix: nobody is named: set userId/)]);
  });

  it.for(strangers("url"))(
    "says once, in one sentence, that what is there %s",
    async ([_what, status, body, sentence], context) => {
      const url = await standIn((_incoming, response) => void response.writeHead(status).end(body));
      expect(await turns(context, twice, { url })).toEqual({
        assembled: nothing,
        logged: [`memprefix: ${url} ${sentence}${without}`],
      });
    },
  );

  describe("with API keys", () => {
    const keyed = servedApp({ source: () => source, environment: { MEMPREFIX_API_KEY: KEY } });
    it("takes the right one, and says once, in one sentence, that another is wrong", async (context) => {
      const right = await turns(context, [{ messages: [], prompt: "One?" }], { url: keyed.base, apiKey: KEY });
      expect(right).toEqual({ assembled: [[section]], logged: [] });
      const sentence = `memprefix: ${keyed.base} rejected the API key (401): set apiKey in the plugin's config to one of its keys`;
      const wrong = await turns(context, twice, { url: keyed.base, apiKey: "wrong" });
      expect(wrong).toEqual({ assembled: nothing, logged: [sentence + without] });
    });
  });
});

function memories(at: number): string {
  return `<memories>\n- ${FACTS[at]}\n</memories>`;
}
