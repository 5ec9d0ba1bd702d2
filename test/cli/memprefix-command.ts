import { EventEmitter } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach } from "vitest";
import { run } from "../../src/cli/command-line.js";
import { type Environment, listening, printedIn } from "./launch.js";
import { type Begun, type Commands, OwnDirectories, SERVES } from "./own-directories.js";

/** What a command that has ended gave. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `memprefix` in this process; whatever still runs after a test is told to stop. */
export function commands(): Commands<Ended> {
  const own = new OwnDirectories();
  let before: Environment = {};
  const running = new Set<Begun<Ended>>();

  beforeEach(() => {
    own.make();
    const { HOME = "", TMPDIR = "" } = process.env;
    before = { HOME, TMPDIR };
    // Libraries ask the process for them.
    process.env["HOME"] = own.home;
    process.env["TMPDIR"] = own.temporary;
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
    own.remove();
  });

  const start = (args: readonly string[], environment: Environment, input = "") => {
    const begun = begin(args, { ...own.environment, ...environment }, input);
    running.add(begun);
    void begun.ended.then(() => running.delete(begun));
    return begun;
  };

  return {
    get root() {
      return own.root;
    },
    get dataDir() {
      return own.dataDir;
    },
    get leftBehind() {
      return own.leftBehind;
    },
    run: (args, { input, environment = {} } = {}) => start(args, environment, input).ended,
    begin: (args, environment = {}) => start(args, environment),
    async serve(environment = {}) {
      const service = start(["serve"], { ...SERVES, ...environment });
      const address = await listening(service);
      return Object.assign(service, { address: address });
    },
  };
}

/** Begins a command in this process. */
export function begin(args: readonly string[], env: Environment, input = ""): Begun<Ended> {
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
  return {
    kill: (signal) => void signals.emit(signal),
    printed: printedIn(stdout, output),
    get stderr() {
      return output.stderr;
    },
    ended,
  };
}
