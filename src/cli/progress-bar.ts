import { Presets, SingleBar } from "cli-progress";
import type { Output } from "./invocation.js";

/** Time between two lines where standard error is no terminal. */
const LINE_MS = 180_000;

/** Runs work of this many steps under a progress bar, or with a line at times where nobody would see a bar. */
export async function withProgress<T>(
  stderr: Output,
  title: string,
  total: number,
  work: (step: () => void) => Promise<T>,
): Promise<T> {
  if (total === 0) return await work(() => {});
  const format = `${title.padEnd(16)} {bar} {value}/{total}  {eta_formatted} left`;
  const bar = new SingleBar({ format, stream: stderr, noTTYOutput: false }, Presets.shades_classic);
  bar.start(total, 0);
  let done = 0;
  const sayDone = () => stderr.write(`memprefix: ${title}: ${done} of ${total} done\n`);
  const lines = stderr.isTTY === true ? undefined : setInterval(sayDone, LINE_MS).unref();
  try {
    return await work(() => {
      done++;
      bar.increment();
    });
  } finally {
    clearInterval(lines);
    bar.stop();
  }
}
