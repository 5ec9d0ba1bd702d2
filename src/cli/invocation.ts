import type { Readable, Writable } from "node:stream";

/** The environment's variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A stream of output; one that is a file descriptor's says which. */
export type Output = Writable & { readonly fd?: number };

type StopName = "SIGINT" | "SIGTERM";

/** Signals that stop a command; Node's `process` is one. */
export interface StopSignals {
  on(name: StopName, listener: () => void): unknown;
  off(name: StopName, listener: () => void): unknown;
}

/** What a command has besides its arguments and the environment. */
export interface CommandIo {
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly signals: StopSignals;
  /** Ends the command at once, whatever is still under way. */
  exit(code: number): void;
}

/** One call of the command line. */
export interface Invocation extends CommandIo {
  readonly env: Environment;
  /** What the command ends with, where nothing is thrown. */
  exitCode: number;
  /** Writes a line to standard output. */
  print(line: string): void;
  /** Writes a line of memprefix's own to standard error. */
  note(line: string): void;
}

/** Begins a call. */
export function invocation(env: Environment, io: CommandIo): Invocation {
  const { stdin, stdout, stderr, signals } = io;
  return {
    ...{ env, stdin, stdout, stderr, signals },
    exitCode: 0,
    exit: (code) => io.exit(code),
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`memprefix: ${line}\n`),
  };
}

/** Resolves at the first SIGINT or SIGTERM; the next one is the process's own to take. */
export function untilStopped(signals: StopSignals): Promise<void> {
  return new Promise((resolve) => {
    const ignore = onStop(signals, () => {
      ignore();
      resolve();
    });
  });
}

/** Calls back at each SIGINT and SIGTERM until the function that it returns is called. */
export function onStop(signals: StopSignals, listener: () => void): () => void {
  const names = ["SIGINT", "SIGTERM"] as const;
  for (const name of names) signals.on(name, listener);
  return () => {
    for (const name of names) signals.off(name, listener);
  };
}

/** Exit code of a command that was stopped, as shells have it for SIGINT. */
export const STOPPED = 130;

/** Aborts on the first SIGINT or SIGTERM; the second ends the command at once. */
export function stopSignal({ signals, stderr, exit }: Pick<Invocation, "signals" | "stderr" | "exit">): {
  readonly signal: AbortSignal;
  end(): void;
} {
  const controller = new AbortController();
  const end = onStop(signals, () => {
    if (controller.signal.aborted) {
      exit(STOPPED);
      return;
    }
    stderr.write("\nmemprefix: stopping; press again to stop at once\n");
    controller.abort();
  });
  return { signal: controller.signal, end };
}
