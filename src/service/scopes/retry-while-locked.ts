import { setTimeout } from "node:timers/promises";
import { StoreUnavailableError } from "../../store/api/store.js";

/** Milliseconds between the first two attempts; each wait is twice the one before … */
const FIRST_WAIT_MS = 5;
/** … up to this long … */
const LONGEST_WAIT_MS = 100;
/** … and together no longer than this. */
const PATIENCE_MS = 2_000;

/**
 * Does work that another process's lock on the database may keep from being done, again and again until it is, or patience ends. Between
 * the attempts others have their turn: the store itself waits hardly at all, because nothing else runs while it does. Work that failed
 * has changed nothing.
 */
export async function retryWhileLocked<T>(work: () => T | Promise<T>): Promise<T> {
  let waited = 0;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    try {
      return await work();
    } catch (error) {
      const isBusy = error instanceof StoreUnavailableError && error.fault === "busy";
      if (!isBusy || waited >= PATIENCE_MS) throw error;
      await setTimeout(wait);
      waited += wait;
    }
  }
}
