/**
 * Mem0 takes two decisions from the process environment: whether to send telemetry (read once, when the package is imported) and where
 * its `config.json` lives (read while a `Memory` starts). Both are the process's, so both are set here and nowhere else.
 */

/** Turns Mem0's telemetry off. Must come before the first import of `mem0ai` or `mem0ai/oss`. */
export function withoutTelemetry(): void {
  process.env.MEM0_TELEMETRY = "false";
}

/** The opening that is using `MEM0_DIR` now; two at a time would write one's `config.json` into the other's directory. */
let lastOpening: Promise<unknown> = Promise.resolve();

/** Runs `open` while `MEM0_DIR` is `directory`, after any such call before it, and puts the variable back. */
export function inMem0Directory<T>(directory: string, open: () => Promise<T>): Promise<T> {
  const opening = lastOpening.then(async () => {
    const before = process.env.MEM0_DIR;
    process.env.MEM0_DIR = directory;
    try {
      return await open();
    } finally {
      if (before === undefined) delete process.env.MEM0_DIR;
      else process.env.MEM0_DIR = before;
    }
  });
  lastOpening = opening.catch(() => undefined);
  return opening;
}
