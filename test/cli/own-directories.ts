import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type Environment, listening } from "./launch.js";

/** A command that runs, takes signals `S`, and ends with `E`. */
export interface Begun<E, S = "SIGINT" | "SIGTERM"> {
  kill(signal: S): void;
  /** Resolves with what the pattern's group matched, once standard output has it. */
  printed(pattern: RegExp): Promise<string>;
  readonly stderr: string;
  readonly ended: Promise<E>;
}

/** A service that listens. */
export interface Listening<E, S = "SIGINT" | "SIGTERM"> extends Begun<E, S> {
  readonly address: string;
}

/** Runs `memprefix` with directories of its own; what still runs after a test is ended, and the directories go. */
export interface Commands<E, S = "SIGINT" | "SIGTERM"> {
  /** Holds nothing but what a test puts there. */
  readonly root: string;
  readonly dataDir: string;
  readonly home: string;
  readonly temporary: string;
  /** Names of what commands left in the home directory and among temporary files. */
  readonly leftBehind: readonly string[];
  run(args: readonly string[], options?: { readonly environment?: Environment }): Promise<E>;
  /** Starts a command, to be stopped before it ends. */
  begin(args: readonly string[], environment?: Environment): Begun<E, S>;
  /** Starts `memprefix serve`, on a free port unless told otherwise; resolves when it listens. */
  serve(environment?: Environment): Promise<Listening<E, S>>;
}

/** What `serve` starts with unless told otherwise. */
export const SERVES: Environment = { MEMPREFIX_PORT: "0", MEMPREFIX_SOURCE: "none" };

/** Runs commands that `begin` begins. @param last what ends those that still run after a test */
export function commandsIn<E extends { readonly code: number | null; readonly stderr: string }, S>(
  begin: (args: readonly string[], environment: Environment) => Begun<E, S>,
  last: S,
): Commands<E, S> {
  let root = "";
  const running = new Set<Begun<E, S>>();
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "memprefix-cli-"));
    for (const directory of [own.home, own.temporary]) mkdirSync(directory);
  });
  afterEach(async () => {
    for (const begun of running) {
      begun.kill(last);
      await begun.ended;
    }
    rmSync(root, { recursive: true });
  });
  const start = (args: readonly string[], environment: Environment) => {
    const { home: HOME, temporary: TMPDIR, dataDir: MEMPREFIX_DATA_DIR } = own;
    const variables = { PATH: process.env["PATH"] ?? "", HOME, TMPDIR, MEMPREFIX_DATA_DIR };
    const begun = begin(args, { ...variables, ...environment });
    running.add(begun);
    void begun.ended.then(() => running.delete(begun));
    return begun;
  };
  const own: Commands<E, S> = {
    get root() {
      return root;
    },
    get dataDir() {
      return join(root, "data");
    },
    get home() {
      return join(root, "home");
    },
    get temporary() {
      return join(root, "tmp");
    },
    get leftBehind() {
      return [own.home, own.temporary].flatMap((directory) => readdirSync(directory));
    },
    run: (args, { environment = {} } = {}) => start(args, environment).ended,
    begin: (args, environment = {}) => start(args, environment),
    async serve(environment = {}) {
      const service = start(["serve"], { ...SERVES, ...environment });
      return Object.assign(service, { address: await listening(service) });
    },
  };
  return own;
}
