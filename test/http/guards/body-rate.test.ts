import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BODY_RATE, type BodyRate, bodyChunks } from "../../../src/http/guards/body.js";

const KIB = 1024;

/** Some bytes again and again, after a pause each: how many were read, and what ended the reading before the body did. */
async function readSlowly(rate: BodyRate, { bytes, everyMs, of }: { bytes: number; everyMs: number; of: number }) {
  const incoming = new IncomingMessage(new Socket());
  let [received, awaited, isOver] = [0, 0, false];
  const reading = (async () => {
    for await (const chunk of bodyChunks(incoming, { rate, clock: Date.now, onAwaited: () => awaited++ }))
      received += chunk.length;
    return null;
  })()
    .catch((error: Error) => error)
    .finally(() => {
      isOver = true;
    });
  for (let sent = 0; sent < of && !isOver; sent += bytes) {
    await vi.advanceTimersByTimeAsync(everyMs);
    incoming.push(Buffer.alloc(bytes));
  }
  incoming.complete = true;
  incoming.push(null);
  return { error: (await reading)?.message ?? null, received, awaited };
}

describe("a body that comes slowly", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ["4 MiB at 256 KiB a second, with pauses", { bytes: 32 * KIB, everyMs: 125, of: 4 * KIB * KIB }],
    ["1 MiB as slowly as the rule allows", { bytes: (BODY_RATE.bytesPerSecond ?? 0) / 2, everyMs: 500, of: KIB * KIB }],
    ["with a pause that is almost too long", { bytes: 64 * KIB, everyMs: BODY_RATE.idleMs - 1, of: 192 * KIB }],
  ])("passes at the defaults: %s", async (_what, how) => {
    expect(await readSlowly(BODY_RATE, how)).toMatchObject({ error: null, awaited: 1 });
  });

  it("passes where it is as quick as it must be, however long it takes", async () => {
    const rate = { idleMs: 400, bytesPerSecond: 1_000 };
    const read = await readSlowly(rate, { bytes: 50, everyMs: 50, of: 60_000 });
    expect(read).toEqual({ error: null, received: 60_000, awaited: 1 });
  });

  it("is refused where it is slower, though some always comes", async () => {
    const rate = { idleMs: 400, bytesPerSecond: 1_000 };
    const read = await readSlowly(rate, { bytes: 10, everyMs: 50, of: 2_000 });
    expect(read.error).toContain("less than 1000 bytes a second");
    // 400 ms, and what the bytes of that time allow.
    expect(read.received).toBe(90);
  });

  it("is refused where none comes, and not a millisecond before", async () => {
    const rate = { idleMs: 400, bytesPerSecond: null };
    expect((await readSlowly(rate, { bytes: 10, everyMs: 400, of: 20 })).error).toContain("no byte");
    expect((await readSlowly(rate, { bytes: 10, everyMs: 399, of: 200 })).error).toBeNull();
  });
});
