import { faultBehind } from "./journal-outcomes.js";

/** Milliseconds that a call waits for another process's lock in all, before its caller is told and may wait longer by itself … */
const MOST_WAIT_MS = 500;
/** … and before its first retry, which doubles up to the last one. */
const FIRST_PAUSE_MS = 1;
const LAST_PAUSE_MS = 64;

/** Milliseconds before each retry where another process holds a lock; ends where there is no more time. */
function* lockPauses(mostMs = MOST_WAIT_MS): Generator<number> {
  const deadline = performance.now() + mostMs;
  for (let pause = FIRST_PAUSE_MS; performance.now() + pause < deadline; pause = Math.min(2 * pause, LAST_PAUSE_MS))
    yield pause;
}

/** Runs `work` again while another process holds a lock. Blocks the thread: none that serves requests. @param mostMs of waiting in all */
export function waitingForLocks<T>(work: () => T, mostMs = MOST_WAIT_MS): T {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const pauses = lockPauses(mostMs);
  for (;;) {
    try {
      return work();
    } catch (error) {
      const pause = pauses.next();
      if (faultBehind(error) !== "busy" || pause.done === true) throw error;
      Atomics.wait(sleeper, 0, 0, pause.value);
    }
  }
}
