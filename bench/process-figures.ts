import { readdirSync, readFileSync } from "node:fs";
import { readStat, readWrittenBytes } from "./load-figures.js";

/** CPU time of processes, and of children of theirs that have ended, in milliseconds. */
export function cpuMsOf(pids: readonly number[]): number {
  return pids.reduce(
    (sum, pid) => sum + (ifThere(() => readStat(readFileSync(`/proc/${pid}/stat`, "utf8")).cpuMs) ?? 0),
    0,
  );
}

/** A process and its children. */
export function familyOf(pid: number): number[] {
  const children = readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    return ifThere(() => readStat(readFileSync(`/proc/${name}/stat`, "utf8")).parent) === pid;
  });
  return [pid, ...children.map(Number)];
}

/** Bytes that processes wrote, those that have ended between two readings as far as they were seen. */
export class WrittenSoFar {
  readonly #seen = new Map<number, number>();

  read(pids: readonly number[]): number {
    for (const pid of pids) {
      const written = ifThere(() => readWrittenBytes(readFileSync(`/proc/${pid}/io`, "utf8")));
      if (written !== null) this.#seen.set(pid, written);
    }
    return [...this.#seen.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

/** Null where the process ended meanwhile. */
function ifThere<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
}
