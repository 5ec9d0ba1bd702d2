import { type ChildProcessByStdio, spawn } from "node:child_process";
import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { childOutput } from "../child-output.js";
import { endingWithUs } from "../ending-children.js";

/** The built command line; `pretest` builds it. */
export const MAIN = resolve(import.meta.dirname, "../../dist/cli/main.js");

/** A process that has ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type Environment = Readonly<Record<string, string>>;

/** A process that was started. */
export type Launched = ReturnType<typeof launch>;

/** How a process is started other than by Node.js itself. */
export interface LaunchOptions {
  /** A command and its arguments that come before Node.js. */
  readonly through?: readonly string[];
  /** The user to run as, by number. */
  readonly uid?: number;
  /** The command line to run, of another installation. */
  readonly main?: string;
}

/** Starts `memprefix` in a process of its own. */
export function launch(
  args: readonly string[],
  env: Environment,
  { through = [], uid, main = MAIN }: LaunchOptions = {},
) {
  const [command = process.execPath, ...rest] = [...through, process.execPath, main, ...args];
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(command, rest, {
    env,
    stdio: ["pipe", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  endingWithUs(child);
  const output = childOutput(child);
  const ended = new Promise<Ended>((done) => {
    child.once("close", (code, signal) => done({ code, signal, ...output }));
  });
  const printed = printedIn(child.stdout, output);
  return { child, ended, printed, stderr: () => output.stderr };
}

/** Gives what waits for a pattern in an output that is collected: resolves with what its group matched. */
export function printedIn(stdout: Readable, output: { readonly stdout: string }): (pattern: RegExp) => Promise<string> {
  return (pattern) =>
    new Promise((found) => {
      const look = () => {
        const [, text] = pattern.exec(output.stdout) ?? [];
        if (text !== undefined) found(text);
      };
      stdout.on("data", look);
      look();
    });
}

/** The address of a service that was started, when it listens; rejects where it ends before. */
export function listening(service: {
  readonly printed: (pattern: RegExp) => Promise<string>;
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
}): Promise<string> {
  return Promise.race([
    service.printed(/listens on (\S+)\n/),
    service.ended.then(({ code, stderr }) => Promise.reject(new Error(`memprefix ended with ${code}: ${stderr}`))),
  ]);
}
