/**
 * `npm run build`: `dist/` from `src/`. A service that runs from `dist/` loads some of its files late: a build is made aside, what differs
 * is renamed into place, and only then does go what is no longer made. A build that failed changes nothing.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { writePlainTypes } from "./plain-types.js";

const DIST = "dist";
const PAGES = ["page.ts", "page.css", "page.html", "icon.svg", "api.ts", "api.html"].map(
  (name) => `src/dashboard/${name}`,
);
/** Built into the pages, so that the package needs their licences. */
const IN_PAGES = ["htm", "preact", "uplot", "openapi-explorer"];
const BUNDLE = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--loader:.html=copy", "--loader:.svg=copy"];

mkdirSync(".tmp", { recursive: true });
const made = mkdtempSync(join(".tmp", "build-"));
process.on("exit", () => rmSync(made, { recursive: true, force: true }));
// Types are checked by `npm run check`, which `npm test` runs beside the tests.
run("tsc", "-p", ".ci", "--noCheck", "--outDir", made);
const licenses = IN_PAGES.map((name) => `${name}:\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}`);
const banner = `/*\nThis script includes ${licenses.join("\n\nand ")}\n*/`;
run("esbuild", ...PAGES, ...BUNDLE, `--banner:js=${banner}`, "--log-level=warning", `--outdir=${made}/dashboard`);
for (const file of ["client/wire-types", "service/fields/call-options"]) {
  await writePlainTypes(join(made, `${file}.d.ts`), `src/${file}.ts`);
}
chmodSync(join(made, "cli/main.js"), 0o755);
const files = filesOf(made);
for (const file of files) putInPlace(file);
const kept = new Set(files);
for (const file of filesOf(DIST)) if (!kept.has(file)) rmSync(join(DIST, file));

/** Runs a tool of `node_modules`; ends with its exit code where that is not 0. */
function run(tool: string, ...args: readonly string[]): void {
  const { status } = spawnSync(join("node_modules/.bin", tool), args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

/** Files below a folder, as paths within it. */
function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

/** A file that is as it was stays: who has it open or loads it now sees it whole. */
function putInPlace(file: string): void {
  const target = join(DIST, file);
  if (existsSync(target) && readFileSync(target).equals(readFileSync(join(made, file)))) return;
  mkdirSync(dirname(target), { recursive: true });
  renameSync(join(made, file), target);
}
