import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, vi } from "vitest";
import { z } from "zod";
import { childOutput } from "../child-output.js";
import { endingWithUs } from "../ending-children.js";

const PROJECT = resolve(import.meta.dirname, "../..");
const manifest = z.looseObject({
  name: z.string(),
  version: z.string(),
  dependencies: z.record(z.string(), z.string()).default({}),
  bin: z.record(z.string(), z.string()).default({}),
});

/** How a program ended. */
export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder in which the packed package is installed, with what it depends on and nothing else. */
export interface InstalledPackage {
  readonly folder: string;
  /** Where the package itself is, below the folder. */
  readonly root: string;
  /** The tarball that it was unpacked from. */
  readonly archive: string;
  /** Paths of all its files, relative to its root. */
  readonly files: readonly string[];
  readonly version: string;
  /** Runs a program with Node in the folder, without the environment of the tests. */
  node(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ran>;
  command(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ran>;
  /** Starts its service. `stop` tells it to end, and gives its exit code. */
  serve(environment?: Readonly<Record<string, string>>): Promise<{
    readonly address: string;
    readonly output: { readonly stdout: string; readonly stderr: string };
    stop(): Promise<number | null>;
  }>;
  write(name: string, text: string): void;
  /** Checks the types of a module that uses the package, as strictly as the compiler can. */
  typeCheck(module: string, more: { readonly lib: readonly string[]; readonly skipLibCheck: boolean }): Promise<Ran>;
  install(names: readonly string[]): void;
}

/**
 * Packs the built project and unpacks it as npm would install it. Its dependencies are links to the project's own, because compiling
 * better-sqlite3 takes a minute; development dependencies and optional parts are not to be found.
 *
 * @param name of the package
 * @param make makes what is packed, in a folder that does not exist yet. Default: the project itself
 */
export function installedPackage(name = "memprefix", make?: (folder: string) => Promise<unknown>): InstalledPackage {
  let folder = "";
  let version = "";
  let archive = "";
  const root = () => join(folder, "node_modules", name);

  beforeAll(async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "memprefix-package-")));
    const packing = ["pack", "--ignore-scripts", "--pack-destination", folder, "--cache", join(folder, "npm")];
    const run = promisify(execFile);
    const packed = make === undefined ? PROJECT : join(folder, "made");
    await make?.(packed);
    await run("npm", packing, { cwd: packed, env: { ...process.env, npm_config_update_notifier: "false" } });
    archive = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "");
    mkdirSync(root(), { recursive: true });
    await run("tar", ["-xzf", archive, "-C", root(), "--strip-components=1"]);
    rmSync(join(folder, "npm"), { recursive: true, force: true });
    const read = manifest.parse(JSON.parse(readFileSync(join(root(), "package.json"), "utf8")));
    version = read.version;
    for (const name of Object.keys(read.dependencies)) link(join(PROJECT, "node_modules", name), name);
    for (const [name, path] of Object.entries(read.bin)) link(join(root(), path), `.bin/${name}`);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const link = (target: string, name: string) => {
    const path = join(folder, "node_modules", name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(target, path);
  };

  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const bin = () => join(folder, "node_modules/.bin", name);
  const start = (args: readonly string[], environment: Readonly<Record<string, string>>) => {
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder, ...environment };
    const child = endingWithUs(spawn(process.execPath, args, { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"] }));
    const output = childOutput(child);
    return { child, output, ended: once(child, "close").then(([code]) => code as number | null) };
  };
  const node: InstalledPackage["node"] = async (args, environment = { MEMPREFIX_SOURCE: "none" }) => {
    const { child, output, ended } = start(args, environment);
    child.stdin.end();
    return { code: await ended, ...output };
  };

  return {
    get folder() {
      return folder;
    },
    get root() {
      return root();
    },
    get archive() {
      return archive;
    },
    get version() {
      return version;
    },
    get files() {
      return readdirSync(root(), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(root().length + 1))
        .toSorted();
    },
    install(names) {
      for (const name of names) link(join(PROJECT, "node_modules", name), name);
    },
    write,
    node,
    typeCheck(module, more) {
      const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
      const compilerOptions = { module: "nodenext", target: "es2023", types: [], noEmit: true, ...strict, ...more };
      write("consumer.ts", module);
      write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
      return node([join(PROJECT, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.json"]);
    },
    command: (args, environment) => node([bin(), ...args], environment),
    async serve(environment = { MEMPREFIX_SOURCE: "none" }) {
      const { child, output, ended } = start([bin(), "serve"], { MEMPREFIX_PORT: "0", ...environment });
      const address = await vi.waitFor(() => {
        const [, listened] = /listens on (\S+)\n/.exec(output.stdout) ?? [];
        if (listened === undefined) throw new Error(`it does not listen: ${output.stderr}`);
        return listened;
      });
      const stop = () => {
        child.kill("SIGTERM");
        return ended;
      };
      return { address, output, stop };
    },
  };
}
