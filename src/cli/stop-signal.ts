import { type Invocation, onStop } from "./invocation.js";

/** Exit code of a command that was stopped, as shells have it for SIGINT. */
export const STOPPED = 130;

/** Aborts on the first SIGINT or SIGTERM; the second ends the command at once. */
export function stopSignal({ signals, stderr, exit }: Pick<Invocation, "signals" | "stderr" | "exit">): {
  readonly signal: AbortSignal;
  end(): void;
} {
  const controller = new AbortController();
  const end = onStop(signals, () => {
    if (controller.signal.aborted) {
      exit(STOPPED);
      return;
    }
    stderr.write("\nmemstem: stopping; press again to stop at once\n");
    controller.abort();
  });
  return { signal: controller.signal, end };
}
