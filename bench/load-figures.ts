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

/** How many samples were at most so many seconds, by that bound as Prometheus writes it. */
export type DelayBuckets = ReadonlyMap<string, number>;

/** Reads `memprefix_event_loop_delay_seconds` from a page of metrics. */
export function readDelays(metrics: string): DelayBuckets {
  const line = /^memprefix_event_loop_delay_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm;
  return new Map([...metrics.matchAll(line)].map(([, bound, count]) => [String(bound), Number(count)]));
}

/** Histograms of several processes add up. */
export function addDelays(all: readonly DelayBuckets[]): DelayBuckets {
  const sum = new Map<string, number>();
  for (const [bound, count] of all.flatMap((one) => [...one])) sum.set(bound, (sum.get(bound) ?? 0) + count);
  return sum;
}

/** The least bound, in milliseconds, that a share of the samples between two readings does not exceed. NaN where there are none. */
export function delayBetween(before: DelayBuckets, after: DelayBuckets, share: number): number {
  const counts = [...after].map(
    ([bound, count]) =>
      [bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound), count - (before.get(bound) ?? 0)] as const,
  );
  const sorted = counts.sort(([a], [b]) => a - b);
  const samples = sorted.at(-1)?.[1] ?? 0;
  if (samples === 0) return Number.NaN;
  return (sorted.find(([, count]) => count >= share * samples)?.[0] ?? Number.NaN) * 1_000;
}

export function quantile(values: readonly number[], q: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(q * (values.length - 1))] ?? Number.NaN;
}
