/*
 * Pure parts of `npm run bench -- load`: what Linux says of a process, and what `/metrics` says of its event loop.
 */

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
 * Reads `/proc/PID/io`: the bytes handed to `write` and its kin, of files, and of the sockets of whoever writes to those with it, as Node
 * does. Not `write_bytes`, which counts a large folio whole whenever a part of it becomes dirty.
 */
export function readWrittenBytes(io: string): number {
  return Number(/^wchar: (\d+)$/m.exec(io)?.[1]);
}

/** Reads the event loop's delay since the page was read last: what 99 % of its samples do not exceed, in milliseconds. */
export function readDelay(metrics: string): number {
  return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics)?.[1]) * 1_000;
}
