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
