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

/** A package could not be loaded, for example during installation. The message is safe to show. */
class LoadingError extends Error {
  override readonly name = "LoadingError";
  constructor(cause: unknown) {
    const code = cause instanceof Error ? ("code" in cause ? cause.code : cause.name) : "unknown";
    super(`its packages could not be loaded (${code}): restart the service once they are installed`, { cause });
  }
}

/** Rejects with {@link LoadingError}. Node.js remembers some failures, so a new attempt may fail where a new process does not. */
export async function loaded<T>(packages: Promise<T>): Promise<T> {
  try {
    return await packages;
  } catch (error) {
    throw new LoadingError(error);
  }
}

/** Mem0 reads whether to send telemetry once, on import, and where `config.json` is while a `Memory` starts. Both are set only here. */

/** Must come before the first import of `mem0ai` or `mem0ai/oss`. */
export function withoutTelemetry(): void {
  process.env.MEM0_TELEMETRY = "false";
}

/** Runs jobs one at a time, first in, first out; a failed job does not stop later ones. The limit on requests in flight bounds it. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(job: () => T | Promise<T>): Promise<T> {
    const outcome = this.#last.then(job);
    this.#last = outcome.catch(() => undefined);
    return outcome;
  }

  async idle(): Promise<void> {
    await this.#last;
  }
}

/** Concurrent openings would write one `config.json` into the other's directory. */
const openings = new SerialQueue();

/** Runs `open` with `MEM0_DIR` set to `directory`, then restores the variable. */
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
