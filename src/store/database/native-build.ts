import Database from "better-sqlite3";

/** The install script runs also where npm is configured to run none. */
const REBUILD =
  "better-sqlite3 has no native build for this Node.js; make it with: npm rebuild better-sqlite3 --ignore-scripts=false";

/**
 * What to do about an error that `better-sqlite3` throws without a native build which this Node.js can load: it was installed without its
 * script, or for another Node.js. Null for other errors.
 */
export function nativeBuildProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const isUnloadable = "code" in error && error.code === "ERR_DLOPEN_FAILED";
  return isUnloadable || error.message.startsWith("Could not locate the bindings file") ? REBUILD : null;
}

/** Tries whether there is a native build; says what to do where there is none, else null. */
export function missingNativeBuild(): string | null {
  try {
    new Database(":memory:").close();
    return null;
  } catch (error) {
    return nativeBuildProblem(error);
  }
}
