/** Gives the same promise to every caller; after a failure the next call tries again. */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

/** A package, or a file of one, could not be loaded, as while they are being installed. The message is safe to show. */
export class LoadingError extends Error {
  override readonly name = "LoadingError";
  constructor(cause: unknown) {
    const code = cause instanceof Error ? ("code" in cause ? cause.code : cause.name) : "unknown";
    super(`its packages could not be loaded (${code}): restart the service once they are installed`, { cause });
  }
}

/**
 * What packages give that are being loaded. Rejects with {@link LoadingError}. Node.js remembers some failures for as long as the process
 * lives, so a new attempt may fail where a new process does not.
 */
export async function loaded<T>(packages: Promise<T>): Promise<T> {
  try {
    return await packages;
  } catch (error) {
    throw new LoadingError(error);
  }
}

/**
 * Mem0 takes two decisions from the process environment: whether to send telemetry (read once, when the package is imported) and where
 * its `config.json` lives (read while a `Memory` starts). Both are the process's, so both are set here and nowhere else.
 */

/** Turns Mem0's telemetry off. Must come before the first import of `mem0ai` or `mem0ai/oss`. */
export function withoutTelemetry(): void {
  process.env.MEM0_TELEMETRY = "false";
}

/**
 * Runs jobs one at a time, first in, first out; a failed job does not stop those after it. Holds one entry per waiting call, so the
 * service's limit on requests in flight bounds it.
 */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `job` after all jobs before it; settles as it does. */
  run<T>(job: () => T | Promise<T>): Promise<T> {
    const outcome = this.#last.then(job);
    this.#last = outcome.catch(() => undefined);
    return outcome;
  }

  /** Resolves when every job so far has settled; never rejects. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/** Openings use `MEM0_DIR` one at a time; two would write one's `config.json` into the other's directory. */
const openings = new SerialQueue();

/** Runs `open` while `MEM0_DIR` is `directory`, after any such call before it, and puts the variable back. */
export function inMem0Directory<T>(directory: string, open: () => Promise<T>): Promise<T> {
  return openings.run(async () => {
    const before = process.env.MEM0_DIR;
    process.env.MEM0_DIR = directory;
    try {
      return await open();
    } finally {
      if (before === undefined) delete process.env.MEM0_DIR;
      else process.env.MEM0_DIR = before;
    }
  });
}
