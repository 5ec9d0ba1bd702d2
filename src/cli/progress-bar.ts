import { Presets, SingleBar } from "cli-progress";

/** A progress bar on standard error, with the time left. */
export function progressBar(title: string, total: number): SingleBar {
  const bar = new SingleBar(
    {
      format: `${title.padEnd(16)} {bar} {value}/{total}  {eta_formatted} left`,
      stream: process.stderr,
      noTTYOutput: false,
    },
    Presets.shades_classic,
  );
  bar.start(total, 0);
  return bar;
}

/** Runs work of so many steps under a progress bar; without one where there is nothing to do. */
export async function withProgress<T>(
  title: string,
  total: number,
  work: (step: () => void) => Promise<T>,
): Promise<T> {
  if (total === 0) return await work(() => {});
  const bar = progressBar(title, total);
  try {
    return await work(() => bar.increment());
  } finally {
    bar.stop();
  }
}
