import type { Writable } from "node:stream";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A stream of output; `fd` where it is a file descriptor's, `isTTY` where it is a terminal. */
export type Output = Writable & { readonly fd?: number; readonly isTTY?: boolean };

type StopName = "SIGINT" | "SIGTERM";

/** Signals that stop a command; Node's `process` is one. */
export interface StopSignals {
  on(name: StopName, listener: () => void): unknown;
  off(name: StopName, listener: () => void): unknown;
}

/** A command's world besides arguments and environment. */
export interface CommandIo {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly signals: StopSignals;
  /** Ends the command at once, whatever is still running. */
  exit(code: number): void;
}

export interface Invocation extends CommandIo {
  readonly env: Environment;
  /** The exit code where nothing is thrown. */
  exitCode: number;
  /** Writes a line to standard output. */
  print(line: string): void;
  /** Writes memprefix's own line to standard error. */
  note(line: string): void;
}

export function invocation(env: Environment, io: CommandIo): Invocation {
  const { stdout, stderr, signals } = io;
  return {
    ...{ env, stdout, stderr, signals },
    exitCode: 0,
    exit: (code) => io.exit(code),
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`memprefix: ${line}\n`),
  };
}

/** Resolves at the first SIGINT or SIGTERM; the process handles the next one itself. */
export function untilStopped(signals: StopSignals): Promise<void> {
  return new Promise((resolve) => {
    const ignore = onStop(signals, () => {
      ignore();
      resolve();
    });
  });
}

/** Calls back at each SIGINT and SIGTERM until the returned function is called. */
export function onStop(signals: StopSignals, listener: () => void): () => void {
  const names = ["SIGINT", "SIGTERM"] as const;
  for (const name of names) signals.on(name, listener);
  return () => {
    for (const name of names) signals.off(name, listener);
  };
}

/** Exit code of a stopped command, as shells use for SIGINT. */
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
