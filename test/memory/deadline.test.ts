import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { MemoryId } from "../../src/core/text/ids.js";
import { type MemorySource, MemorySourceError, withDeadline } from "../../src/memory/memory-source.js";
import { failureOf, scopeOf } from "./memory-source.suite.js";

const never = new AbortController().signal;
const ada = scopeOf("ada");
const query = { scope: ada, query: "tea", topK: 1 };
const limits = { searchMs: 100, writeMs: 1_000 };

/** A source whose calls last `ms`, or for ever, and which notes the signals that it is given but takes no notice of them. */
function slowSource(ms: number, outcome: () => unknown = () => []) {
  const signals: AbortSignal[] = [];
  const slowly = <T>(signal: AbortSignal) => {
    signals.push(signal);
    return new Promise<T>((resolve, reject) => {
      if (ms === Number.POSITIVE_INFINITY) return;
      setTimeout(() => {
        try {
          resolve(outcome() as T);
        } catch (error) {
          reject(error);
        }
      }, ms);
    });
  };
  const source: MemorySource = {
    name: "slow",
    owned: true,
    search: (_query, signal) => slowly(signal),
    add: (_scope, _memories, signal) => slowly(signal),
    delete: (_scope, _id, signal) => slowly(signal),
    deleteUser: (_scope, signal) => slowly(signal),
    async close() {},
  };
  return { source, signals };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("withDeadline", () => {
  it("gives what the source gives in time, and leaves no timer", async () => {
    const { source } = slowSource(99, () => [{ id: "a", text: "tea" }]);
    const limited = withDeadline(source, limits);
    expect(limited).toMatchObject({ name: "slow", owned: true });
    const searching = limited.search(query, never);
    await vi.advanceTimersByTimeAsync(99);
    expect(await searching).toEqual([{ id: "a", text: "tea" }]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("ends a search that takes no notice of its signal", async () => {
    const { source, signals } = slowSource(Number.POSITIVE_INFINITY);
    const failure = failureOf(withDeadline(source, limits).search(query, never));
    await vi.advanceTimersByTimeAsync(100);
    expect(await failure).toEqual({ kind: "timeout", afterMs: 100 });
    expect(signals[0]?.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("gives writes their own, larger limit", async () => {
    const { source } = slowSource(Number.POSITIVE_INFINITY);
    const limited = withDeadline(source, limits);
    const failures = [
      failureOf(limited.add(ada, [{ text: "tea" }], never)),
      failureOf(limited.delete(ada, "x" as MemoryId, never)),
      failureOf(limited.deleteUser(ada, never)),
    ];
    let ended = 0;
    for (const failure of failures) void failure.then(() => (ended += 1));
    await vi.advanceTimersByTimeAsync(999);
    expect(ended).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(await Promise.all(failures)).toEqual(failures.map(() => ({ kind: "timeout", afterMs: 1_000 })));
  });

  it("drops what comes too late, a failure included", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const { source } = slowSource(200, () => {
      throw new MemorySourceError("slow", { kind: "unreachable", cause: "late" });
    });
    const failure = failureOf(withDeadline(source, limits).search(query, never));
    await vi.advanceTimersByTimeAsync(300);
    expect(await failure).toMatchObject({ kind: "timeout" });
    vi.useRealTimers();
    await new Promise((turn) => setTimeout(turn, 10));
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it("ends at once when the caller's signal aborts, and does not hold on to it", async () => {
    const { source, signals } = slowSource(Number.POSITIVE_INFINITY);
    const abort = new AbortController();
    const removed = vi.spyOn(abort.signal, "removeEventListener");
    const failure = failureOf(withDeadline(source, limits).search(query, abort.signal));
    abort.abort();
    expect(await failure).toEqual({ kind: "aborted" });
    expect(signals[0]?.aborted).toBe(true);
    expect(removed).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not begin for a signal that has aborted", async () => {
    const { source, signals } = slowSource(1);
    expect(await failureOf(withDeadline(source, limits).search(query, AbortSignal.abort()))).toEqual({
      kind: "aborted",
    });
    expect(signals).toEqual([]);
  });
});
