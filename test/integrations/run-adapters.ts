/**
 * `npm run adapters`: tries the adapters of frameworks that are too large to be development dependencies. Their packages are installed into
 * a folder below the project; there the programs of `heavy/` and the pages' samples are type-checked against them, with the adapters'
 * own declarations, and the programs run. Ends with 1 where something is wrong. `-- NAME`: the frameworks whose names hold that.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { ROOT } from "../docs/pages.js";
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

const run = promisify(execFile);

endOnSignals();
const parts = process.argv.slice(2);
const wanted = Object.keys(PACKAGES).filter((name) => parts.length === 0 || parts.some((part) => name.includes(part)));
mkdirSync(join(ROOT, ".tmp"), { recursive: true });
const folder = mkdtempSync(join(ROOT, ".tmp", "adapters-"));
try {
  for (const name of wanted) await tryFramework(name);
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
  const samples = pageSamples(page).map((sample, at) => {
    const file = `sample-${at}.ts`;
    writeFileSync(join(own, file), `${sample}\nexport {};\n`);
    return file;
  });
  const unlike = await typeErrors(own, [program, ...samples]);
  const tried = await tryAdapter({ file: join(own, program), folder: own, node: process.execPath });
  const shown = await tryPage(page, own);
  const wrong = [
    ...unlike,
    ...tried.flatMap(({ what, wrong }) => wrong.map((one) => `${what}: ${one}`)),
    ...shown.map((one) => `${page}: ${one}`),
  ];
  console.log(`${name}: installed in ${seconds} s; ${tried.length} conversations, ${wrong.length} faults`);
  for (const one of wrong) console.log(`- ${one}`);
  if (wrong.length > 0) process.exitCode = 1;
}

/** Installs packages with npm, and memprefix as it is built here. Packages run no scripts. */
async function install(own: string, dependencies: Readonly<Record<string, string>>): Promise<void> {
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
  // They say that they want a newer Node; what is tried here does not.
  await run("npm", ["install", "--ignore-scripts", "--engine-strict=false", ...quiet], { cwd: own });
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
    await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json"], { cwd: own });
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
