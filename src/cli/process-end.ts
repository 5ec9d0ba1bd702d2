/** Exit code after writing to a closed pipe (128 + SIGPIPE), as shells have it; Node.js ignores the signal itself. */
const READER_GONE = 141;

/** Ends this process when standard output fails: silently where the reader closed the pipe, as `… | head` does. */
export function endWithOutput(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(READER_GONE);
    process.stderr.write(`memstem: standard output: ${error.message}\n`);
    process.exit(1);
  });
}

/** Exit code of a command that was stopped, as shells have it for SIGINT. */
export const STOPPED = 130;

/** Aborts on the first SIGINT or SIGTERM; the second ends the process at once. */
export function stopSignal(): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(STOPPED);
    process.stderr.write("\nmemstem: stopping; press again to stop at once\n");
    controller.abort();
  };
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const name of signals) process.on(name, stop);
  return {
    signal: controller.signal,
    end: () => {
      for (const name of signals) process.off(name, stop);
    },
  };
}
