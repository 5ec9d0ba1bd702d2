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
