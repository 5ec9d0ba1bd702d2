import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import type { ProgramPlace } from "./running-program.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Packages whose versions go together, and the paths of the programs that use them. */
const SETS = z
  .array(z.object({ programs: z.array(z.string()), packages: z.record(z.string(), z.string()) }))
  .parse(JSON.parse(readFileSync(join(HERE, "heavy/packages.json"), "utf8")));
/** Programs of memprefix's own adapters, which ask their engine themselves. */
const ADAPTERS = "adapters/";
/** What programs share. */
const SHARED = ["client-program.ts", "ai-sdk-uses.ts", "langchain-uses.ts", "heavy/mem0-provider-program.ts"];

/**
 * Paths of the programs, memprefix's own adapters among them, whose packages are no development dependencies: too large, or in their newest
 * versions, which want a newer Node than memprefix does.
 */
export const HEAVY_CLIENTS: readonly string[] = SETS.flatMap(({ programs }) => programs);

/** The oldest Node that they all run on, and the one that is installed where this one is older. */
const OLDEST_NODE = [22, 13] as const;
const NODE = "22.23.3";

/** Copies a program to its packages, which are installed below `folder` with npm, once. Packages run no scripts. */
export async function installClient(name: string, folder: string): Promise<ProgramPlace> {
  const set = SETS.findIndex(({ programs }) => programs.includes(name));
  const own = join(folder, `set-${set}`);
  if (!existsSync(join(own, "node_modules"))) {
    mkdirSync(own, { recursive: true });
    const manifest = { private: true, type: "module", dependencies: SETS[set]?.packages };
    writeFileSync(join(own, "package.json"), JSON.stringify(manifest));
    await install(own);
  }
  for (const file of [...SHARED, name]) cpSync(join(HERE, file), join(own, file));
  if (name.startsWith(ADAPTERS)) {
    cpSync(join(HERE, ADAPTERS), join(own, ADAPTERS), { recursive: true });
    copyMemprefix(join(own, "node_modules/memprefix"));
  }
  return { file: join(own, name), folder: own, node: await nodeIn(folder) };
}

/** Path of a Node that runs all clients: this one, or one that is installed into the folder. */
async function nodeIn(folder: string): Promise<string> {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return process.execPath;
  const platform = process.platform === "win32" ? "win" : process.platform;
  const name = `node-${platform}-${process.arch}`;
  const own = join(folder, "node");
  if (!existsSync(own)) {
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "package.json"), JSON.stringify({ private: true, dependencies: { [name]: NODE } }));
    await install(own);
  }
  return join(own, "node_modules", name, "bin", process.platform === "win32" ? "node.exe" : "node");
}

/** The built adapters and client as `memprefix-client` has them: none of their packages is memprefix's own. */
function copyMemprefix(folder: string): void {
  const project = join(HERE, "../..");
  mkdirSync(folder, { recursive: true });
  cpSync(join(project, "package.json"), join(folder, "package.json"));
  for (const part of ["client", "core", "integrations", "http/contracts/wire-names.js"])
    cpSync(join(project, "dist", part), join(folder, "dist", part), { recursive: true });
}

async function install(folder: string): Promise<void> {
  const quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
  // npm's Node is not the one that runs them.
  const args = ["install", "--ignore-scripts", "--engine-strict=false", ...quiet];
  await promisify(execFile)("npm", args, { cwd: folder });
}
