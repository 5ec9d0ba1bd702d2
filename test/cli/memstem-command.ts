import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach } from "vitest";
import { run } from "../../src/cli/command-line.js";
import type { Environment } from "./launch.js";

/** What a command that has ended gave. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export interface Begun {
  kill(signal: "SIGINT" | "SIGTERM"): void;
  /** Resolves with what the pattern's group matched, once standard output has it. */
  printed(pattern: RegExp): Promise<string>;
  readonly stderr: string;
  readonly ended: Promise<Ended>;
}

/** A service that listens. */
export interface Listening extends Omit<Begun, "printed"> {
  readonly address: string;
}

/** Runs `memstem` in this process, with directories of its own; whatever still runs after a test is told to stop, and the directories go. */
export interface Commands {
  /** Holds nothing but what a test puts there. */
  readonly root: string;
  readonly dataDir: string;
  /** Names of what commands left in the home directory and among temporary files. */
  readonly leftBehind: readonly string[];
  run(
    args: readonly string[],
    options?: { readonly input?: string; readonly environment?: Environment },
  ): Promise<Ended>;
  /** Starts a command, to be stopped before it ends. */
  begin(args: readonly string[], environment?: Environment): Begun;
  /** Starts `memstem serve`, on a free port unless told otherwise; resolves when it listens. */
  serve(environment?: Environment): Promise<Listening>;
}

export function commands(): Commands {
  let root = "";
  let before: Environment = {};
  const running = new Set<Begun>();

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "memstem-cli-"));
    for (const name of ["home", "tmp"]) mkdirSync(join(root, name));
    const { HOME = "", TMPDIR = "" } = process.env;
    before = { HOME, TMPDIR };
    // Libraries ask the process for them.
    process.env["HOME"] = join(root, "home");
    process.env["TMPDIR"] = join(root, "tmp");
  });
  afterEach(async () => {
    for (const begun of running) {
      begun.kill("SIGTERM");
      await begun.ended;
    }
    for (const [name, value] of Object.entries(before)) {
      if (value === "") delete process.env[name];
      else process.env[name] = value;
    }
    rmSync(root, { recursive: true });
  });

  const start = (args: readonly string[], environment: Environment, input = ""): Begun => {
    const own = { PATH: process.env["PATH"] ?? "", HOME: join(root, "home"), TMPDIR: join(root, "tmp") };
    const begun = begin(args, { ...own, MEMSTEM_DATA_DIR: join(root, "data"), ...environment }, input);
    running.add(begun);
    void begun.ended.then(() => running.delete(begun));
    return begun;
  };

  return {
    get root() {
      return root;
    },
    get dataDir() {
      return join(root, "data");
    },
    get leftBehind() {
      return ["home", "tmp"].flatMap((name) => readdirSync(join(root, name)));
    },
    run: (args, { input, environment = {} } = {}) => start(args, environment, input).ended,
    begin: (args, environment = {}) => start(args, environment),
    async serve(environment = {}) {
      const begun = start(["serve"], { MEMSTEM_PORT: "0", MEMSTEM_SOURCE: "none", ...environment });
      const early = begun.ended.then(({ code, stderr }) =>
        Promise.reject(new Error(`it ended with ${code}: ${stderr}`)),
      );
      const address = await Promise.race([begun.printed(/listens on (\S+)\n/), early]);
      return {
        address,
        get stderr() {
          return begun.stderr;
        },
        kill: begun.kill,
        ended: begun.ended,
      };
    },
  };
}

/** Begins a command in this process. */
export function begin(args: readonly string[], env: Environment, input = ""): Begun {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const output = { stdout: "", stderr: "" };
  for (const [name, stream] of Object.entries({ stdout, stderr }))
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      output[name as keyof typeof output] += chunk;
    });
  const signals = new EventEmitter();
  const ended = new Promise<Ended>((resolve) => {
    const end = async (code: number) => {
      // What was written before is read.
      await new Promise((read) => setImmediate(read));
      resolve({ code, ...output });
    };
    run(args, env, { stdin: Readable.from(input === "" ? [] : [input]), stdout, stderr, signals, exit: end }).then(
      end,
      (error) => {
        throw error;
      },
    );
  });
  const printed = (pattern: RegExp) =>
    new Promise<string>((found) => {
      const look = () => {
        const [, text] = pattern.exec(output.stdout) ?? [];
        if (text !== undefined) found(text);
      };
      stdout.on("data", look);
      look();
    });
  return {
    kill: (signal) => void signals.emit(signal),
    printed,
    get stderr() {
      return output.stderr;
    },
    ended,
  };
}
