/** What a shell says of a program that wrote to a pipe whose reader had gone (128 + SIGPIPE); Node.js ignores the signal itself. */
const READER_GONE = 141;

/** Ends this process where its standard output takes no more: without a word where the reader has gone, as `… | head` does. */
export function endWithOutput(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(READER_GONE);
    process.stderr.write(`memstem: standard output: ${error.message}\n`);
    process.exit(1);
  });
}
