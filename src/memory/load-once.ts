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
