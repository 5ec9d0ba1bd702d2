import { spawnSync } from "node:child_process";
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { installCommand } from "../src/cli/optional-packages.js";

/*
 * What each use of memstem installs: `npm run bench:install`. Packs what is built, installs it into an empty folder with an empty cache, as
 * a fresh machine does, and prints MB, packages and seconds. Asks the registry that npm is configured for. Packages' scripts run apart from
 * that: better-sqlite3's fetches a binary, or compiles one, which takes a minute or more.
 */

const ROOT = resolve(import.meta.dirname, "..");
const work = mkdtempSync(join(tmpdir(), "memstem-install-"));

try {
  const service = packed(ROOT);
  const client = packed(madeClient());
  const uses: readonly (readonly [string, readonly string[]])[] = [
    ["the client, the core, the adapters: memstem-client", [client]],
    ["the service and the library: memstem", [service]],
    ["the same with the embedded Mem0", [service, ...installCommand("embedded").split(" ").slice(2)]],
  ];
  console.log("| installed | MB | packages | seconds |\n| --- | ---: | ---: | ---: |");
  let built: Folder | null = null;
  for (const [name, wanted] of uses) {
    const folder = installed(wanted);
    row(name, folder.megabytes, folder.packages, folder.seconds);
    if (wanted.length === 1 && wanted[0] === service) built = folder;
  }
  if (built !== null) row("better-sqlite3's binary, with memstem", ...binaryIn(built));
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** Packs a folder as it is; gives the tarball. */
function packed(folder: string): string {
  const said = run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", work], folder);
  return join(work, said.trim().split("\n").at(-1) ?? "");
}

function madeClient(): string {
  const folder = join(work, "client");
  run(process.execPath, ["--import", "tsx", ".ci/client-package.ts", folder], ROOT);
  return folder;
}

/** A folder into which a use was installed. */
interface Folder {
  readonly path: string;
  readonly megabytes: number;
  readonly packages: number;
  readonly seconds: number;
}

/** Installs packages into an empty folder, without running their scripts. */
function installed(wanted: readonly string[]): Folder {
  const path = mkdtempSync(join(work, "use-"));
  writeFileSync(join(path, "package.json"), JSON.stringify({ name: "consumer", private: true }));
  const cache = mkdtempSync(join(work, "cache-"));
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--cache", cache];
  const seconds = secondsOf(() => run("npm", ["install", ...flags, ...wanted], path));
  const lock = readFileSync(join(path, "node_modules/.package-lock.json"), "utf8");
  const { packages } = JSON.parse(lock) as { readonly packages: object };
  return { path, megabytes: megabytesIn(path), packages: Object.keys(packages).length, seconds };
}

/** What the binary adds: MB, no package, seconds. */
function binaryIn({ path, megabytes }: Folder): readonly [number, number, number] {
  const seconds = secondsOf(() => run("npm", ["rebuild", "better-sqlite3", "--ignore-scripts=false"], path));
  return [megabytesIn(path) - megabytes, 0, seconds];
}

function row(name: string, megabytes: number, packages: number, seconds: number): void {
  const size = megabytes.toFixed(megabytes < 10 ? 1 : 0);
  console.log(`| ${name} | ${size} | ${packages} | ${seconds.toFixed(0)} |`);
}

/** As the disk counts, in blocks; folders too. */
function megabytesIn(folder: string): number {
  const modules = join(folder, "node_modules");
  const paths = readdirSync(modules, { recursive: true }).map(String);
  return paths.reduce((sum, path) => sum + 512 * lstatSync(join(modules, path)).blocks, 0) / 1e6;
}

function secondsOf(work: () => unknown): number {
  const start = performance.now();
  work();
  return (performance.now() - start) / 1_000;
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}:\n${stderr}`);
  return stdout;
}
