import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { afterEach, beforeEach } from "vitest";
import { childOutput } from "../child-output.js";

/** The built command line; `pretest` builds it. */
const MAIN = resolve(import.meta.dirname, "../../dist/cli/main.js");

/** A process that has ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A service that listens. */
export interface Listening {
  readonly address: string;
  readonly stderr: string;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

/** A command that runs. */
export interface Begun {
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
}

type Environment = Readonly<Record<string, string>>;

/** Runs `memstem` in processes with directories of their own; whatever still runs after a test is killed, and the directories go. */
export interface Commands {
  /** Holds nothing but what a test puts there. */
  readonly root: string;
  readonly dataDir: string;
  /** Names of what the processes left in their home directory and among temporary files. */
  readonly leftBehind: readonly string[];
  run(
    args: readonly string[],
    options?: { readonly input?: string; readonly environment?: Environment },
  ): Promise<Ended>;
  /** Starts a command, to be stopped before it ends. */
  begin(args: readonly string[]): Begun;
  /** Starts `memstem serve`, on a free port unless told otherwise; resolves when it listens. */
  serve(environment?: Environment): Promise<Listening>;
}

export function commands(): Commands {
  let root = "";
  const running = new Set<ReturnType<typeof launch>>();

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "memstem-cli-"));
    for (const name of ["home", "tmp"]) mkdirSync(join(root, name));
  });
  afterEach(async () => {
    for (const { child, ended } of running) {
      child.kill("SIGKILL");
      await ended;
    }
    running.clear();
    rmSync(root, { recursive: true });
  });

  const start = (args: readonly string[], environment: Environment) => {
    const own = { PATH: process.env["PATH"] ?? "", HOME: join(root, "home"), TMPDIR: join(root, "tmp") };
    const started = launch(args, { ...own, MEMSTEM_DATA_DIR: join(root, "data"), ...environment });
    running.add(started);
    void started.ended.then(() => running.delete(started));
    return started;
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
    run(args, { input = "", environment = {} } = {}) {
      const { child, ended } = start(args, environment);
      child.stdin.on("error", () => {});
      child.stdin.end(input);
      return ended;
    },
    begin(args) {
      const { child, ended } = start(args, {});
      return { kill: (signal) => void child.kill(signal), ended };
    },
    async serve(environment = {}) {
      const started = start(["serve"], { MEMSTEM_PORT: "0", MEMSTEM_SOURCE: "none", ...environment });
      const address = await Promise.race([
        started.printed(/listens on (\S+)\n/),
        started.ended.then(({ code, stderr }) => Promise.reject(new Error(`memstem ended with ${code}: ${stderr}`))),
      ]);
      return {
        address,
        get stderr() {
          return started.stderr();
        },
        kill: (signal) => void started.child.kill(signal),
        ended: started.ended,
      };
    },
  };
}

function launch(args: readonly string[], env: Environment) {
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(process.execPath, [MAIN, ...args], {
    env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const output = childOutput(child);
  const ended = new Promise<Ended>((done) => {
    child.once("close", (code, signal) => done({ code, signal, ...output }));
  });
  const printed = (pattern: RegExp) =>
    new Promise<string>((found) => {
      const look = () => {
        const [, text] = pattern.exec(output.stdout) ?? [];
        if (text !== undefined) found(text);
      };
      child.stdout.on("data", look);
      look();
    });
  return { child, ended, printed, stderr: () => output.stderr };
}
