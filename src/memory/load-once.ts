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

/** Codes of Node.js for a package, or a file of it, that is missing, half written or built for another Node.js. */
const LOADING_FAILED =
  /^(?:ERR_(?:MODULE|PACKAGE|INVALID_PACKAGE|INVALID_MODULE|DLOPEN|UNSUPPORTED|REQUIRE)_|MODULE_NOT_FOUND$|ENOENT$)/;

/**
 * Says so where an error means that packages could not be loaded, as while they are being installed; null for others. Node.js remembers
 * some of these failures for as long as the process lives, so a restart is what helps for sure.
 */
export function loadingProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  if (!LOADING_FAILED.test(code) && !(error instanceof SyntaxError)) return null;
  return `its packages could not be loaded (${code}): restart the service once they are installed`;
}
