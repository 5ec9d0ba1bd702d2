/*
 * Performs the Dockerfile's steps in a temporary folder, for machines without Docker: COPY of what .dockerignore leaves, RUN by the machine's
 * own shell, ENV, USER, ENTRYPOINT and CMD as they are written. A path of the image is one below the folder. What differs: the base images
 * are the machine's own system and Node, and `npm ci`, which takes minutes, gives packages that the project has installed.
 */
import { type ChildProcessByStdio, execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import type { Readable } from "node:stream";
import { z } from "zod";
import { childOutput } from "../child-output.js";
import { endingWithUs } from "../ending-children.js";
import { readStages, type Stage, type Step } from "./dockerfile.js";

const PROJECT = resolve(import.meta.dirname, "../..");

/** Whether this process may give processes and files another owner, as Docker does. */
export const IS_ROOT = process.getuid?.() === 0;

/** A container's process. */
export interface Contained {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly output: { readonly stdout: string; readonly stderr: string };
  readonly ended: Promise<number | null>;
}

/** The image, and its containers' volume. */
export interface BuiltImage {
  /** Its last stage. */
  readonly stage: Stage;
  /** Where a path of the image is on this machine. */
  at(path: string): string;
  /** `docker run`: the entrypoint with arguments, else with the image's command. */
  run(environment: Environment, args?: readonly string[]): Contained;
  /** `docker exec`: another program of the image, with the same environment. */
  exec(environment: Environment, command: readonly string[]): Contained;
  remove(): void;
}

type Environment = Readonly<Record<string, string>>;

/** Builds the image. As root, its tree is root's and nobody may write to it; else nobody may write to it. */
export function buildImage(): BuiltImage {
  const folder = mkdtempSync(join(tmpdir(), "memprefix-image-"));
  // Another user's processes are to reach what is in it.
  chmodSync(folder, 0o755);
  const roots = new Map<string, string>();
  const stages = readStages();
  for (const stage of stages) {
    const root = join(folder, stage.name);
    for (const of of ["usr/local/bin", "tmp"]) mkdirSync(join(root, of), { recursive: true });
    roots.set(stage.name, root);
    fill(root, stage.steps, roots);
  }
  const stage = stages.at(-1);
  if (stage === undefined) throw new Error("the Dockerfile has no stage");
  const root = join(folder, stage.name);
  const workdir = lastWorkdir(stage);
  const at = (path: string) => (path.startsWith("/") ? join(root, path) : path);
  chmodSync(at("/tmp"), 0o1777);
  takeWriting(at(workdir));
  const [uid, gid] = (stage.user ?? "0:0").split(":").map(Number);
  const owner = IS_ROOT && uid !== undefined && gid !== undefined ? { uid, gid } : {};

  const start = (given: Environment, [program = "", ...args]: readonly string[]): Contained => {
    const environment = Object.entries({ ...stage.environment, ...given }).map(([name, value]) => [name, at(value)]);
    const path = [at("/usr/local/bin"), dirname(process.execPath), process.env["PATH"] ?? ""].join(":");
    const child = spawn(at(program), args.map(at), {
      cwd: at(workdir),
      env: { PATH: path, HOME: at("/nonexistent"), TMPDIR: at("/tmp"), ...Object.fromEntries(environment) },
      stdio: ["ignore", "pipe", "pipe"],
      ...owner,
    });
    const output = childOutput(endingWithUs(child));
    return { child, output, ended: new Promise((done) => child.once("close", (code) => done(code))) };
  };

  return {
    stage,
    at,
    run: (environment, args = stage.command) => start(environment, [...stage.entrypoint, ...args]),
    exec: start,
    remove() {
      if (!IS_ROOT) execFileSync("chmod", ["-R", "u+w", folder]);
      rmSync(folder, { recursive: true });
    },
  };
}

function fill(root: string, steps: readonly Step[], roots: ReadonlyMap<string, string>): void {
  let workdir = "/";
  for (const step of steps) {
    if (step.kind === "workdir") {
      workdir = resolve(workdir, step.path);
      mkdirSync(join(root, workdir), { recursive: true });
    } else if (step.kind === "run") perform(step.command, root, workdir);
    else {
      const target = join(root, resolve(workdir, step.target));
      const intoFolder = step.sources.length > 1 || step.target.endsWith("/");
      for (const source of step.sources) {
        const from = step.from === null ? inContext(source) : join(roots.get(step.from) ?? "", source);
        copy(from, intoFolder ? join(target, basename(source)) : target);
      }
    }
  }
}

function perform(command: string, root: string, workdir: string): void {
  const folder = join(root, workdir);
  if (command.includes("npm ci")) {
    installPackages(folder, command.includes("--omit=dev --omit=optional"));
    return;
  }
  const owned = IS_ROOT ? command : command.replaceAll(/ -[og] \d+/g, "");
  // Paths of the image, not options and not parts of a relative path.
  const inside = owned.replaceAll(/(?<=\s)\/(?=\w)/g, `${root}/`);
  execFileSync("sh", ["-c", inside], { cwd: folder, env: { ...process.env, npm_config_update_notifier: "false" } });
}

const lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      dev: z.boolean().optional(),
      devOptional: z.boolean().optional(),
      optional: z.boolean().optional(),
    }),
  ),
});

/** The project's own packages: all of them, to build with, or copies of those that memprefix runs with. */
function installPackages(folder: string, forRunning: boolean): void {
  const installed = join(PROJECT, "node_modules");
  if (!forRunning) {
    symlinkSync(installed, join(folder, "node_modules"));
    return;
  }
  const { packages } = lock.parse(JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")));
  for (const [path, { dev, devOptional, optional }] of Object.entries(packages)) {
    // Packages within packages are copied with them, and those for other systems are not there.
    const isNeeded = ![dev, devOptional, optional].includes(true);
    const isOwn = /^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path);
    if (isOwn && isNeeded && existsSync(join(PROJECT, path))) copy(join(PROJECT, path), join(folder, path));
  }
}

/** Copies a file or folder. Files of packages become links to the same file: they are many, and nothing here writes to them. */
function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  const isOfPackages = from.includes("node_modules");
  if (isOfPackages && spawnSync("cp", ["-RPl", from, to], { stdio: "ignore" }).status === 0) return;
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}

/** Lets nobody write to a tree; what it shares with the project's packages keeps its mode. */
function takeWriting(tree: string): void {
  execFileSync("find", [tree, "-type", "d", "-exec", "chmod", "a-w", "{}", "+"]);
  execFileSync("find", [
    tree,
    ...["-name", "node_modules", "-prune", "-o", "-type", "f", "-exec", "chmod", "a-w", "{}", "+"],
  ]);
}

/** A file or folder of the build's context; throws where .dockerignore leaves it out. */
function inContext(source: string): string {
  const path = relative(".", source);
  const patterns = readFileSync(join(PROJECT, ".dockerignore"), "utf8").split("\n").filter(Boolean);
  const decides = patterns.findLast((pattern) => pattern === "*" || pattern.replace("!", "") === path);
  if (decides?.startsWith("!") !== true) throw new Error(`${source} is not in the context`);
  return join(PROJECT, path);
}

function lastWorkdir({ steps }: Stage): string {
  return steps.reduce((at, step) => (step.kind === "workdir" ? resolve(at, step.path) : at), "/");
}
