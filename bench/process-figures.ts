/*
 * What Linux says of processes, and what `/metrics` says of their event loops.
 */

import { readdirSync, readFileSync } from "node:fs";

/** Linux counts processor time in hundredths of a second. */
const TICK_MS = 10;

/** Reads `/proc/PID/stat`: the CPU time of all its threads, and of its children that have ended, in milliseconds; and its parent. */
export function readStat(stat: string): { readonly parent: number; readonly cpuMs: number } {
  // The name, in brackets, may have any character.
  const fields = stat
    .replace(/^.*\) /s, "")
    .split(" ")
    .map(Number);
  const [user, system, usersOfEnded, systemOfEnded] = fields.slice(11, 15) as [number, number, number, number];
  return { parent: fields[1] as number, cpuMs: (user + system + usersOfEnded + systemOfEnded) * TICK_MS };
}

/**
 * Reads `/proc/PID/io`: the bytes that were written to files, and to sockets where these are written by the same call, as Node
 * does. Not `write_bytes`, which counts a large folio whole whenever a part of it becomes dirty.
 */
export function readWrittenBytes(io: string): number {
  return Number(/^wchar: (\d+)$/m.exec(io)?.[1]);
}

/** Reads the event loop's delay since the page was read last: what 99 % of its samples do not exceed, in milliseconds. */
export function readDelay(metrics: string): number {
  return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics)?.[1]) * 1_000;
}

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
