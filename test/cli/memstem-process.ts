import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type Ended, type Environment, launch, listening } from "./launch.js";

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
  /** Resolves with what the pattern's group matched, once standard output has it. */
  printed(pattern: RegExp): Promise<string>;
  readonly ended: Promise<Ended>;
}

/** Runs `memstem` in processes with directories of their own; whatever still runs after a test is killed, and the directories go. */
export interface Processes {
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
  begin(args: readonly string[], environment?: Environment): Begun;
  /** Starts `memstem serve`, on a free port unless told otherwise; resolves when it listens. */
  serve(environment?: Environment): Promise<Listening>;
}

export function processes(): Processes {
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
    begin(args, environment = {}) {
      const { child, ended, printed } = start(args, environment);
      return { kill: (signal) => void child.kill(signal), printed, ended };
    },
    async serve(environment = {}) {
      const started = start(["serve"], { MEMSTEM_PORT: "0", MEMSTEM_SOURCE: "none", ...environment });
      const address = await listening(started);
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
