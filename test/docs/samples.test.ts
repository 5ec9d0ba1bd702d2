import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { CLIENT_VARIABLES, SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import { childOutput } from "../child-output.js";
import { temporaryFolder } from "../temporary-folders.js";
import { READERS, ROOT, readPages, type Sample, samplesOf } from "./pages.js";
import { type ShellCommand, shellCommands } from "./shell-words.js";

/** The package's doors. */
const { exports: EXPORTS } = z
  .object({ exports: z.record(z.string(), z.union([z.string(), z.object({ types: z.string() })])) })
  .parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));

const samples = readPages().flatMap(samplesOf);
const inLanguage = (language: string) => samples.filter((sample) => sample.language === language);
const placeOf = ({ page, line }: Sample) => `${page}:${line}`;

/** Whether a page is of a framework that is too large to be a development dependency. */
function isOfHeavyPackages(page: string): boolean {
  const packages = readFileSync(join(ROOT, "test/integrations/heavy/packages.json"), "utf8");
  return Object.keys(JSON.parse(packages) as object).some((name) => page === `docs/${name}.md`);
}

describe("every sample of the documentation", () => {
  it("is of a kind that is checked; what has no language is no code", () => {
    const kinds = ["", "text", "ts", "json", "sh", "sql", "python"];
    expect(samples.filter(({ language }) => !kinds.includes(language)).map(placeOf)).toEqual([]);
  });

  it.each(inLanguage("json").map((sample) => [placeOf(sample), sample.text]))("%s is JSON", (_place, text) => {
    expect(() => JSON.parse(text) as unknown).not.toThrow();
  });
});

const HAS_PYTHON = spawnSync("python3", ["--version"]).status === 0;
describe.skipIf(!HAS_PYTHON)(`every sample in Python${HAS_PYTHON ? "" : " (skipped: there is no python3)"}`, () => {
  it.each(inLanguage("python").map((sample) => [placeOf(sample), sample.text]))("%s is Python", (_place, text) => {
    const parsed = spawnSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], { input: text });
    expect({ status: parsed.status, stderr: parsed.stderr.toString() }).toEqual({ status: 0, stderr: "" });
  });
});

describe("every sample in TypeScript", () => {
  const OPTIONS = {
    module: "nodenext",
    target: "es2024",
    lib: ["es2024"],
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    noEmit: true,
    paths: Object.fromEntries(
      Object.entries(EXPORTS).flatMap(([name, door]) =>
        typeof door === "string" ? [] : [[join("memprefix", name), [join(ROOT, door.types)]]],
      ),
    ),
  };
  it("is right by the types of memprefix, Mem0 and OpenAI's client", async () => {
    // Beside node_modules, where the real clients are found.
    mkdirSync(join(ROOT, ".tmp"), { recursive: true });
    const directory = mkdtempSync(join(ROOT, ".tmp", "samples-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    // `npm run adapters` has the packages of the others.
    const checked = inLanguage("ts").filter(({ page }) => !isOfHeavyPackages(page));
    const files = checked.map((sample) => {
      const name = `${sample.page.replaceAll("/", "-")}-${sample.line}.ts`;
      writeFileSync(join(directory, name), `${sample.text}\nexport {};\n`);
      return name;
    });
    expect(files.length).toBeGreaterThan(2);
    writeFileSync(join(directory, "readers.d.ts"), READERS);
    writeFileSync(join(directory, "package.json"), '{ "type": "module" }');
    const config = { compilerOptions: OPTIONS, files: ["readers.d.ts", ...files] };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(config));
    const args = [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json"];
    const tsc = spawn(process.execPath, args, { cwd: directory });
    const output = childOutput(tsc);
    const [code] = (await once(tsc, "close")) as [number];
    expect({ code, ...output }).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

/** What the reader's own code has: a search that finds two memories, and an engine that prints the messages that it is asked. */
const SEARCH_AND_ENGINE = `
  const [userId, conversationId, instructions, model] = ["ana", "trip", "Be brief.", "any"];
  const history = [{ role: "user", content: "Hello." }, { role: "assistant", content: "Hello, Ana." }];
  const question = "Where should we eat?";
  const memory = { search: async (asked, { filters, topK }) => {
    if (asked !== question || filters.user_id !== userId || topK !== 20) throw new Error("another search");
    return { results: [{ id: "m1", memory: "Ana is vegetarian." }, { id: "m2", memory: "Ana is in Lisbon." }] };
  } };
  const openai = { chat: { completions: { create: async ({ messages }) => console.log(JSON.stringify(messages)) } } };
`;

describe("the README's code", () => {
  const directory = temporaryFolder();

  /** Runs a sample, which is JavaScript as it stands, and gives the messages that the engine was asked. */
  async function asked(beginning: string): Promise<unknown> {
    const readme = inLanguage("ts").filter(({ page }) => page === "README.md");
    const text = readme.find((sample) => sample.text.startsWith(beginning))?.text ?? "";
    const built = pathToFileURL(join(ROOT, "dist/index.js")).href;
    writeFileSync(
      join(directory, "sample.mjs"),
      `${SEARCH_AND_ENGINE}${text.replace('"memprefix"', JSON.stringify(built))}`,
    );
    const child = spawn(process.execPath, ["sample.mjs"], { cwd: directory });
    const output = childOutput(child);
    const [code] = (await once(child, "close")) as [number];
    expect({ code, stderr: output.stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(output.stdout) as unknown;
  }

  it("asks the engine with the memories in the instructions before, and in the question after", async () => {
    const said = [
      { role: "user", content: "Hello." },
      { role: "assistant", content: "Hello, Ana." },
    ];
    const list = "- Ana is vegetarian.\n- Ana is in Lisbon.";
    expect(await asked("// Before")).toEqual([
      { role: "system", content: `Be brief.\nUser Memories:\n${list}` },
      ...said,
      { role: "user", content: "Where should we eat?" },
    ]);
    const section = "<memories>\n- Ana is vegetarian.\n- Ana is in Lisbon.\n</memories>";
    expect(await asked("// After")).toEqual([
      { role: "system", content: "Be brief." },
      ...said,
      { role: "user", content: `${section}\n\nWhere should we eat?` },
    ]);
  });
});

describe("every command of the documentation", () => {
  const manifest = z.object({ scripts: z.record(z.string(), z.string()) });
  const { scripts } = manifest.parse(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")));
  const binaries = new Set(readdirSync(join(ROOT, "node_modules/.bin")));
  const variables = new Set<string>([...SETTING_NAMES.map(variableOf), ...CLIENT_VARIABLES]);
  /** What the samples use of the machine. */
  const PROGRAMS = "cat cd curl docker echo grep head jq kill mkdir mv node openssl pip rm".split(" ");
  /** The options of every command of memprefix, from the page that has their help. */
  const sections = new Map(
    readFileSync(join(ROOT, "docs/cli.md"), "utf8")
      .split("\n## memprefix ")
      .slice(1)
      .map((section) => [section.split("\n", 1)[0] ?? "", section]),
  );
  const options = new Map(
    [...sections].map(([name, section]) => {
      const [, same] = /\[memprefix ([a-z ]+)\]/.exec(section) ?? [];
      const own = (same === undefined ? undefined : sections.get(same)) ?? section;
      return [name, new Set(own.match(/--[a-z][\w-]*/g) ?? [])];
    }),
  );

  it.each(inLanguage("sh").map((sample) => [placeOf(sample), sample.text]))("%s exists", (_place, text) => {
    const functions = [...text.matchAll(/^\s*(\w+)\(\)/gm)].map(([, name]) => name ?? "");
    expect(shellCommands(text).flatMap((command) => wrongIn(command, functions))).toEqual([]);
  });

  it("in a sentence exists, and so does every setting that is named", () => {
    const wrong = readPages().flatMap(({ path, text }) => {
      const sentences = text.replaceAll(/^```[\s\S]*?^```$/gm, "");
      const code = [...sentences.matchAll(/`([^`\n]+)`/g)].map(([, inside = ""]) => inside);
      const isCommand = /^(?:\w+=\S+ )*(?:npm|npx|memprefix) [^…<]*$/;
      const commands = code.filter((inside) => isCommand.test(inside));
      const settings = code.flatMap((inside) => inside.match(/^MEMPREFIX_[A-Z0-9_]+/) ?? []);
      const inCommands = commands.flatMap(shellCommands).flatMap((command) => wrongIn(command, []));
      const unknown = settings.filter((name) => !variables.has(name) && !name.endsWith("_"));
      return [...inCommands, ...unknown].map((what) => `${path}: ${what}`);
    });
    expect(wrong).toEqual([]);
  });

  function wrongIn(
    { variables: set, words: [program, ...args] }: ShellCommand,
    functions: readonly string[],
  ): string[] {
    const unknown = set.map(({ name }) => name).filter((name) => name.startsWith("MEMPREFIX_") && !variables.has(name));
    return [...unknown, ...(program === undefined ? [] : wrongCall(program, args, functions))];
  }

  function wrongCall(program: string, args: readonly string[], functions: readonly string[]): string[] {
    if (program === "npm") return wrongScript(args);
    if (program === "npx") {
      const [command = "", ...rest] = args;
      // npx fetches a package with its version.
      const isThere = binaries.has(command) || /^[\w-]+@\d/.test(command);
      return command === "memprefix" ? wrongMemprefix(rest) : isThere ? [] : [command];
    }
    if (program === "memprefix") return wrongMemprefix(args);
    return [...PROGRAMS, ...functions].includes(program) ? [] : [program];
  }

  function wrongScript(args: readonly string[]): string[] {
    const [verb = "", ...rest] = args.filter((word) => word !== "--silent");
    if (["audit", "ci", "install", "pack", "publish", "rebuild", "sbom"].includes(verb)) return [];
    const [script = "", separator, ...forwarded] = verb === "run" ? rest : [verb, ...rest];
    if (scripts[script] === undefined) return [script].filter((name) => name !== "");
    return script === "demo" && separator === "--" ? wrongMemprefix(["demo", ...forwarded]) : [];
  }

  function wrongMemprefix(args: readonly string[]): string[] {
    const name = [args.slice(0, 2).join(" "), args[0] ?? ""].find((words) => options.has(words));
    // Named as a group, as in "memprefix keys".
    if (args.length === 1 && [...options.keys()].some((words) => words.startsWith(`${args[0]} `))) return [];
    if (name === undefined) return args.slice(0, 1).filter((word) => !["--help", "--version"].includes(word));
    const given = args.filter((word) => word.startsWith("--")).map((word) => word.split("=", 1)[0] ?? "");
    return given.filter((word) => word !== "--help" && !options.get(name)?.has(word)).map((word) => `${name} ${word}`);
  }
});
