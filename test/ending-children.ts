import type { ChildProcess } from "node:child_process";

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Ends a child process with this one, also where this one ends by an error. Gives it back. */
export function endingWithUs<C extends ChildProcess>(child: C): C {
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** How a process ends that a signal ended: as a shell says it. */
const ENDED_BY = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** Has this process end as by an error when it is told to: by default a signal leaves its children running. For a program's own start. */
export function endOnSignals(): void {
  for (const [signal, code] of Object.entries(ENDED_BY)) process.once(signal, () => process.exit(code));
}
