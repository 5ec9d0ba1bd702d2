import { StaleScopeError, type StoreFault, StoreUnavailableError } from "../api/store.js";
import { faultOf } from "../database/sqlite-faults.js";

/** How a call went, as it crosses threads: errors as data, since an error loses its class there. */
export type Outcome =
  | { readonly value: unknown }
  | { readonly problem: "stale" }
  | { readonly problem: StoreFault; readonly cause: string }
  | { readonly problem: "bug"; readonly message: string; readonly stack: string | undefined };

/** The fault behind an error, named by us or by SQLite; null for any other error. */
export function faultBehind(error: unknown): StoreFault | null {
  return error instanceof StoreUnavailableError ? error.fault : faultOf(error);
}

export function outcomeOfError(error: unknown): Outcome {
  if (error instanceof StaleScopeError) return { problem: "stale" };
  const fault = faultBehind(error);
  if (fault !== null) return { problem: fault, cause: causeOf(error) };
  if (error instanceof Error) return { problem: "bug", message: error.message, stack: error.stack };
  return { problem: "bug", message: String(error), stack: undefined };
}

/** The call's value; throws what it threw. */
export function resultOf(outcome: Outcome): unknown {
  if (!("problem" in outcome)) return outcome.value;
  if (outcome.problem === "stale") throw new StaleScopeError("the scope was changed by another process");
  if (outcome.problem !== "bug") throw new StoreUnavailableError(outcome.problem, { cause: new Error(outcome.cause) });
  const error = new Error(outcome.message);
  if (outcome.stack !== undefined) error.stack = outcome.stack;
  throw error;
}

function causeOf(error: unknown): string {
  if (error instanceof StoreUnavailableError && error.cause instanceof Error) return error.cause.message;
  return error instanceof Error ? error.message : String(error);
}
