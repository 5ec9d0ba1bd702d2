import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { installCommand } from "../src/cli/optional-packages.js";

/*
 * What each use of memstem installs: `npm run bench:install`. Packs what is built, installs it into an empty folder with an empty cache, as
 * a fresh machine does, and prints MB, packages and seconds. Asks the registry that npm is configured for; better-sqlite3 is compiled where
 * it has no prebuilt binary for the machine, which is most of the seconds then.
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
  for (const [name, wanted] of uses) {
    const { megabytes, packages, seconds } = installed(wanted);
    console.log(`| ${name} | ${megabytes.toFixed(megabytes < 10 ? 1 : 0)} | ${packages} | ${seconds.toFixed(0)} |`);
  }
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

/** Installs packages into an empty folder. */
function installed(wanted: readonly string[]) {
  const folder = mkdtempSync(join(work, "use-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true }));
  const cache = join(folder, "cache");
  mkdirSync(cache);
  const start = performance.now();
  run("npm", ["install", "--no-audit", "--no-fund", "--cache", cache, ...wanted], folder);
  const seconds = (performance.now() - start) / 1_000;
  const modules = join(folder, "node_modules");
  const paths = readdirSync(modules, { recursive: true }).map(String);
  const sizes = paths.map((path) => lstatSync(join(modules, path))).filter((entry) => entry.isFile());
  const packages = paths.filter((path) =>
    /(?:^|\/node_modules\/)(?:@[^/]+\/)?[^@/.][^/]*\/package\.json$/.test(`${path}`),
  );
  return { megabytes: sizes.reduce((sum, { size }) => sum + size, 0) / 1e6, packages: packages.length, seconds };
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}:\n${stderr}`);
  return stdout;
}
