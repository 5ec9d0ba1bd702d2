/**
 * `npm run adapters`: tries the adapters of frameworks that are too large to be development dependencies. A framework with a folder of tests
 * here is installed into the project's `node_modules`, where it stays until the next `npm ci`; its tests are type-checked and run. The packages
 * of the others are installed into a folder below the project; there the programs of `heavy/` are type-checked against them, with the adapters'
 * own declarations, and run. The samples of each framework's page are type-checked, too. Ends with 1 where something is wrong. `-- NAME`: the
 * frameworks whose names hold that.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { READERS, ROOT } from "../docs/pages.js";
import { endOnSignals } from "../ending-children.js";
import { pageSamples } from "./page-program.js";
import { tryAdapter } from "./tried-adapter.js";
import { tryPage } from "./tried-page.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PACKAGES = z
  .record(z.string(), z.record(z.string(), z.string()))
  .parse(JSON.parse(readFileSync(join(HERE, "heavy/packages.json"), "utf8")));
/** What the programs share, from the project's root. */
const SHARED = ["test/integrations/heavy", "test/integrations/adapter-program.ts", "test/clients/client-program.ts"];

const QUIET = ["--no-audit", "--no-fund", "--loglevel=error"];
const TSC = "node_modules/typescript/bin/tsc";

const run = promisify(execFile);

endOnSignals();
const parts = process.argv.slice(2);
const wanted = Object.keys(PACKAGES).filter((name) => parts.length === 0 || parts.some((part) => name.includes(part)));
mkdirSync(join(ROOT, ".tmp"), { recursive: true });
const folder = mkdtempSync(join(ROOT, ".tmp", "adapters-"));
try {
  for (const name of wanted) await (existsSync(join(HERE, name)) ? trySuite(name) : tryFramework(name));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function tryFramework(name: string): Promise<void> {
  const own = join(folder, name);
  const program = `test/integrations/heavy/${name}.ts`;
  const page = `docs/${name}.md`;
  const seconds = await timed(() => install(own, PACKAGES[name] ?? {}));
  for (const file of SHARED) {
    mkdirSync(join(own, dirname(file)), { recursive: true });
    cpSync(join(ROOT, file), join(own, file), { recursive: true });
  }
  const unlike = await typeErrors(own, [program, ...writeSamples(page, own)]);
  const tried = await tryAdapter({ file: join(own, program), folder: own, node: process.execPath });
  const shown = await tryPage(page, own);
  const wrong = [
    ...unlike,
    ...tried.flatMap(({ what, wrong }) => wrong.map((one) => `${what}: ${one}`)),
    ...shown.map((one) => `${page}: ${one}`),
  ];
  tell(`${name}: installed in ${seconds} s; ${tried.length} conversations`, wrong);
}

/** A framework whose tests are in a folder of its name. */
async function trySuite(name: string): Promise<void> {
  const own = join(folder, name);
  const packages = Object.entries(PACKAGES[name] ?? {}).map(([each, version]) => `${each}@${version}`);
  const seconds = await timed(async () => {
    // Without `--save-dev` npm leaves out what the project has as an optional peer.
    await run("npm", ["install", "--save-dev", "--no-save", ...QUIET, ...packages], { cwd: ROOT });
    mkdirSync(join(own, "node_modules"), { recursive: true });
    symlinkSync(ROOT, join(own, "node_modules/memprefix"), "dir");
  });
  const suite = `test/integrations/${name}`;
  const wrong = [
    ...(await typeErrors(own, writeSamples(`docs/${name}.md`, own))),
    ...(await outputIfFailed(TSC, "-p", suite)),
    ...(await outputIfFailed("node_modules/vitest/vitest.mjs", "run", "--mode", "adapters", suite)),
  ];
  tell(`${name}: installed in ${seconds} s`, wrong);
}

function tell(what: string, wrong: readonly string[]): void {
  console.log(`${what}; ${wrong.length} faults`);
  for (const one of wrong) console.log(`- ${one}`);
  if (wrong.length > 0) process.exitCode = 1;
}

/** Writes the samples of a page into a folder; gives the files' names. */
function writeSamples(page: string, own: string): readonly string[] {
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "readers.d.ts"), READERS);
  const files = pageSamples(page).map((sample, at) => {
    const file = `sample-${at}.ts`;
    writeFileSync(join(own, file), `${sample}\nexport {};\n`);
    return file;
  });
  return ["readers.d.ts", ...files];
}

/** What a program of the project printed, where it failed. */
async function outputIfFailed(program: string, ...args: readonly string[]): Promise<readonly string[]> {
  try {
    await run(process.execPath, [join(ROOT, program), ...args], { cwd: ROOT, maxBuffer: 2 ** 26 });
    return [];
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
    return [`${stdout ?? ""}${stderr ?? error}`];
  }
}

/** Installs packages with npm, and memprefix as it is built here. Packages run no scripts. */
async function install(own: string, dependencies: Readonly<Record<string, string>>): Promise<void> {
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  // They say that they want a newer Node; what is tried here does not.
  await run("npm", ["install", "--ignore-scripts", "--engine-strict=false", ...QUIET, "--no-package-lock"], {
    cwd: own,
  });
  symlinkSync(ROOT, join(own, "node_modules/memprefix"), "dir");
}

/** What is wrong by the types of the installed packages and of memprefix's declarations. */
async function typeErrors(own: string, files: readonly string[]): Promise<readonly string[]> {
  const compilerOptions = {
    ...{ module: "nodenext", target: "es2024", lib: ["es2024", "dom"], types: ["node"], noEmit: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
    typeRoots: [join(ROOT, "node_modules/@types")],
  };
  writeFileSync(join(own, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  try {
    await run(process.execPath, [join(ROOT, TSC), "-p", "tsconfig.json"], { cwd: own });
    return [];
  } catch (error) {
    return [String((error as { readonly stdout?: string }).stdout ?? error)];
  }
}

async function timed(work: () => Promise<void>): Promise<string> {
  const from = performance.now();
  await work();
  return ((performance.now() - from) / 1_000).toFixed(1);
}
