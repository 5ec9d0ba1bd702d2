import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterEach, describe, expect, it } from "vitest";
import { EventLoopBlocks } from "./event-loop-blocks.js";

/** Milliseconds. */
const LONG = 150;
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("what blocks the event loop", () => {
  const blocks: number[] = [];
  let watched: EventLoopBlocks;
  afterEach(() => {
    watched.stop();
    blocks.length = 0;
  });

  it("is counted while the process computes, and is at most the time that it computed", async () => {
    watched = new EventLoopBlocks((ms) => blocks.push(ms));
    await later(60);
    const before = process.cpuUsage();
    for (let used = 0; used < LONG * 1_000; ) {
      const { user, system } = process.cpuUsage(before);
      used = user + system;
    }
    await later(120);
    expect(Math.max(...blocks)).toBeGreaterThan(LONG / 2);
  });

  it("is not what the process waited for: no processor time, no block, but a delay", async () => {
    const delays = monitorEventLoopDelay({ resolution: 10 });
    delays.enable();
    watched = new EventLoopBlocks((ms) => blocks.push(ms));
    await later(60);
    const still = new Int32Array(new SharedArrayBuffer(4));
    Atomics.wait(still, 0, 0, 400);
    await later(120);
    delays.disable();
    expect(Math.max(0, ...blocks)).toBeLessThan(200);
    expect(delays.max / 1e6).toBeGreaterThan(300);
  });
});
