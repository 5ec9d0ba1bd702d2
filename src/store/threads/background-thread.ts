import { getPriority, setPriority } from "node:os";

/** Where both want a core, a background thread gets a tenth of what a compose's gets (sched(7)). */
const NICE = 10;

/**
 * Gives the calling thread a lower priority than those that composes wait for. On Linux a nice value is a thread's own (setpriority(2)); elsewhere it is the
 * whole process's, so there nothing changes.
 */
export function stayInBackground(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.max(getPriority(0), NICE));
  } catch {
    // A sandbox may forbid it; the work is the same.
  }
}
