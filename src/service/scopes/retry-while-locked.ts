import { setTimeout } from "node:timers/promises";
import { StoreUnavailableError } from "../../store/api/store.js";

/** Milliseconds between the first two attempts; doubled after each. */
const FIRST_WAIT_MS = 5;
/** Longest wait between two attempts, in milliseconds. */
const LONGEST_WAIT_MS = 100;
/** Time-out of all waits together, in milliseconds. */
const TIMEOUT_MS = 2_000;

/**
 * Retries work with exponential backoff while another process locks the database, until {@link TIMEOUT_MS}; then rejects with the store's
 * error. Other requests run between the attempts: the store's own wait would block the event loop. Failed work has changed nothing.
 */
export async function retryWhileLocked<T>(work: () => T | Promise<T>): Promise<T> {
  let waited = 0;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    try {
      return await work();
    } catch (error) {
      const isBusy = error instanceof StoreUnavailableError && error.fault === "busy";
      if (!isBusy || waited >= TIMEOUT_MS) throw error;
      await setTimeout(wait);
      waited += wait;
    }
  }
}
