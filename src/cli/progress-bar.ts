import type { Writable } from "node:stream";
import { Presets, SingleBar } from "cli-progress";

export function progressBar(stderr: Writable, title: string, total: number): SingleBar {
  const bar = new SingleBar(
    {
      format: `${title.padEnd(16)} {bar} {value}/{total}  {eta_formatted} left`,
      stream: stderr,
      noTTYOutput: false,
    },
    Presets.shades_classic,
  );
  bar.start(total, 0);
  return bar;
}

/** Runs work of this many steps under a progress bar; without one where there is nothing to do. */
export async function withProgress<T>(
  stderr: Writable,
  title: string,
  total: number,
  work: (step: () => void) => Promise<T>,
): Promise<T> {
  if (total === 0) return await work(() => {});
  const bar = progressBar(stderr, title, total);
  try {
    return await work(() => bar.increment());
  } finally {
    bar.stop();
  }
}
