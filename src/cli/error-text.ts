import { EvaluationError } from "../eval/base/run-files.js";
import { InvalidRequestError, NotFoundError, StoreUnavailableError } from "../service/base/errors.js";
import { DatabaseOpenError } from "../store/open-error.js";

/** Errors that a command's caller can fix. */
const SAYABLE = [EvaluationError, DatabaseOpenError, StoreUnavailableError];

/** A line or two for an error that the caller can fix, the stack for any other. */
export function errorText(error: unknown): string {
  if (error instanceof InvalidRequestError)
    return error.issues.map(({ field, message }) => `memprefix: ${field}: ${message}\n`).join("");
  if (error instanceof NotFoundError) return `memprefix: ${error.field}: ${error.message}\n`;
  if (!(error instanceof Error)) return `memprefix: ${String(error)}\n`;
  const isSystems = "code" in error && typeof error.code === "string";
  const isSayable = isSystems || SAYABLE.some((kind) => error instanceof kind);
  const isTaken = isSystems && error.code === "EADDRINUSE";
  const instead = isTaken ? ": end what listens there, or choose another MEMPREFIX_PORT" : "";
  return `memprefix: ${isSayable ? `${error.message}${instead}` : (error.stack ?? error.message)}\n`;
}

/** The message for a missing native build of the database, whatever failed first; null for other errors. */
export async function unbuilt(error: unknown): Promise<string | null> {
  if (error instanceof InvalidRequestError || error instanceof NotFoundError || error instanceof DatabaseOpenError)
    return null;
  const [{ default: Database }, { nativeBuildProblem }] = await Promise.all([
    import("better-sqlite3"),
    import("../store/sqlite/open.js"),
  ]);
  try {
    new Database(":memory:").close();
    return null;
  } catch (missing) {
    const problem = nativeBuildProblem(missing);
    return problem === null ? null : `memprefix: ${problem}\n`;
  }
}
