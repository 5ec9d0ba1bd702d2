import { MemorySourceError } from "./memory-source.js";

/**
 * Settles as `work` does, or rejects with {@link MemorySourceError} `aborted` as soon as the signal aborts. Work that cannot be
 * interrupted (Mem0's embedded store takes no signal) then ends unobserved: its outcome is dropped, a rejection included.
 */
export function untilAborted<T>(source: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const aborted = () => new MemorySourceError(source, { kind: "aborted" });
  if (signal.aborted) return Promise.reject(aborted());
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(aborted());
    signal.addEventListener("abort", stop, { once: true });
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}
