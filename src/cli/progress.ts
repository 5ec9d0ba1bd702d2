import type { Output } from "./invocation.js";

/** Time between two lines: somebody watches a terminal, and a log is read later. */
const TERMINAL_MS = 5_000;
const LOG_MS = 180_000;

/** Runs work of this many steps, and says at times how many are done. */
export async function withProgress<T>(
  stderr: Output,
  title: string,
  total: number,
  work: (step: () => void) => Promise<T>,
): Promise<T> {
  let done = 0;
  const say = () => stderr.write(`memprefix: ${title}: ${done} of ${total} done\n`);
  const lines = setInterval(say, stderr.isTTY === true ? TERMINAL_MS : LOG_MS).unref();
  try {
    return await work(() => void done++);
  } finally {
    clearInterval(lines);
  }
}
