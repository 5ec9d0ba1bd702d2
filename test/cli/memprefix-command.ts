import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach } from "vitest";
import { run } from "../../src/cli/command-line.js";
import { type Environment, printedIn } from "./launch.js";
import { type Begun, type Commands, commandsIn } from "./own-directories.js";

/** What a command that has ended gave. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `memprefix` in this process; whatever still runs after a test is told to stop. */
export function commands(): Commands<Ended> {
  const { HOME = "", TMPDIR = "" } = process.env;
  afterEach(() => {
    for (const [name, value] of Object.entries({ HOME, TMPDIR })) {
      if (value === "") delete process.env[name];
      else process.env[name] = value;
    }
  });
  return commandsIn<Ended, "SIGINT" | "SIGTERM">((args, environment) => {
    // Libraries ask the process for them.
    const { HOME, TMPDIR } = environment;
    Object.assign(process.env, { HOME, TMPDIR });
    return begin(args, environment);
  }, "SIGTERM");
}

/** Begins a command in this process. */
export function begin(args: readonly string[], env: Environment): Begun<Ended> {
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
    run(args, env, { stdout, stderr, signals, exit: end }).then(end, (error) => {
      throw error;
    });
  });
  return {
    kill: (signal) => void signals.emit(signal),
    printed: printedIn(stdout, output),
    get stderr() {
      return output.stderr;
    },
    ended,
  };
}
