import { describe, expect, it } from "vitest";
import { readDelay, readStat, readWrittenBytes, WrittenSoFar } from "../../bench/process-figures.js";

describe("what Linux says of a process", () => {
  it("CPU time is that of its threads and of its ended children, whatever its name has", () => {
    const stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 12 3 40 5 20 0 11 0 500 1000 200";
    expect(readStat(stat)).toEqual({ parent: 7, cpuMs: 600 });
  });

  it("bytes written are those handed to the kernel", () => {
    const io =
      "rchar: 1\nwchar: 23456\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";
    expect(readWrittenBytes(io)).toBe(23456);
  });

  it.skipIf(process.platform !== "linux")("keeps what a process that has ended had written", () => {
    const written = new WrittenSoFar();
    const own = written.read([process.pid]);
    expect(own).toBeGreaterThan(0);
    expect(written.read([])).toBe(own);
  });
});

describe("the event loop's delay", () => {
  it("is read in milliseconds; none where a page lacks it", () => {
    expect(readDelay("# TYPE x gauge\nnodejs_eventloop_lag_p99_seconds 0.0125\n")).toBe(12.5);
    expect(readDelay("up 1")).toBeNaN();
  });
});
