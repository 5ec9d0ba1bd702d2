import { describe, expect, it } from "vitest";
import { addDelays, delayBetween, quantile, readDelays, readStat, readWrittenBytes } from "../../bench/load-figures.js";
import { WrittenSoFar } from "../../bench/process-figures.js";

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
  const page = (counts: readonly [string, number][]) =>
    [
      "# TYPE memprefix_event_loop_delay_seconds histogram",
      ...counts.map(([bound, count]) => `memprefix_event_loop_delay_seconds_bucket{le="${bound}"} ${count}`),
      "memprefix_event_loop_delay_seconds_sum 1.5",
    ].join("\n");
  const before = readDelays(
    page([
      ["0.001", 500],
      ["0.025", 500],
      ["0.1", 510],
      ["+Inf", 510],
    ]),
  );

  it("is the least bound that the share of the samples in between does not exceed", () => {
    const after = readDelays(
      page([
        ["0.001", 1400],
        ["0.025", 1499],
        ["0.1", 1510],
        ["+Inf", 1511],
      ]),
    );
    expect(delayBetween(before, after, 0.5)).toBe(1);
    expect(delayBetween(before, after, 0.99)).toBe(25);
    expect(delayBetween(before, after, 0.999)).toBe(100);
    expect(delayBetween(before, after, 1)).toBe(Number.POSITIVE_INFINITY);
  });

  it("is none without samples, and adds up over processes", () => {
    expect(delayBetween(before, before, 0.5)).toBeNaN();
    expect(delayBetween(new Map(), readDelays("up 1"), 0.5)).toBeNaN();
    const [one, two] = [
      readDelays(
        page([
          ["0.001", 9],
          ["+Inf", 10],
        ]),
      ),
      readDelays(
        page([
          ["0.001", 0],
          ["+Inf", 10],
        ]),
      ),
    ];
    expect([...addDelays([one, two])]).toEqual([
      ["0.001", 9],
      ["+Inf", 20],
    ]);
  });
});

describe("quantiles", () => {
  it("are of the sorted values", () => {
    expect(quantile([9, 1, 5], 0.5)).toBe(5);
    expect(quantile([9, 1, 5], 1)).toBe(9);
    expect(quantile([], 0.5)).toBeNaN();
  });
});
