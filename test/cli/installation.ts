import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type Environment, type Launched, launch } from "./launch.js";

const ROOT = resolve(import.meta.dirname, "../..");

/** A built memprefix of its own, whose packages may come and go; a fresh one for every test. */
export interface Installation {
  readonly root: string;
  /** Takes one package, or puts a copy of it in its place that lacks one of its folders. */
  spoil(name: string, without?: string): void;
  mend(name: string): void;
  start(args: readonly string[], environment?: Environment): Launched;
}

export function installation(): Installation {
  let root = "";
  const running = new Set<Launched>();
  const place = (name: string) => join(root, "node_modules", name);
  const link = (name: string) => symlinkSync(join(ROOT, "node_modules", name), place(name));

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "memprefix-installation-"));
    for (const part of ["dist", "migrations", "package.json"])
      cpSync(join(ROOT, part), join(root, part), { recursive: true });
    for (const name of packages()) {
      mkdirSync(dirname(place(name)), { recursive: true });
      link(name);
    }
  });
  afterEach(async () => {
    for (const { child, ended } of running) {
      child.kill("SIGKILL");
      await ended;
    }
    running.clear();
    rmSync(root, { recursive: true });
  });

  return {
    get root() {
      return root;
    },
    spoil(name, without) {
      rmSync(place(name), { recursive: true });
      if (without === undefined) return;
      const lacks = join(ROOT, "node_modules", name, without);
      cpSync(join(ROOT, "node_modules", name), place(name), { recursive: true, filter: (from) => from !== lacks });
    },
    mend(name) {
      rmSync(place(name), { recursive: true, force: true });
      link(name);
    },
    start(args, environment = {}) {
      const own = { PATH: process.env["PATH"] ?? "", HOME: root, TMPDIR: root, MEMPREFIX_DATA_DIR: join(root, "data") };
      const started = launch(
        args,
        { ...own, MEMPREFIX_PORT: "0", ...environment },
        { main: join(root, "dist/cli/main.js") },
      );
      running.add(started);
      return started;
    },
  };
}

function packages(): string[] {
  return readdirSync(join(ROOT, "node_modules")).flatMap((name) => {
    if (name.startsWith(".")) return [];
    if (!name.startsWith("@")) return [name];
    return readdirSync(join(ROOT, "node_modules", name)).map((inScope) => `${name}/${inScope}`);
  });
}
