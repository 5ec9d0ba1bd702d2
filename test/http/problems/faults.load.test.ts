import { describe, expect, it } from "vitest";
import { runFaults } from "./fault-run.js";
import { FAULT_WIRES } from "./fault-wires.js";

const MIB = 1024 * 1024;

/** Some calls of every kind. */
const CALLS = 48;
/** Milliseconds. A machine that is busy with other tests pauses for seconds; calls that hang take as long, so all APIs do it at once. */
const FIRST_BYTE_MS = 15_000;

describe("engines and clients that fail in every way, one after the other and at once", () => {
  it.concurrent.each(FAULT_WIRES)(
    "cost the proxy nothing that lasts, and leave every index right: $api.path",
    { timeout: 300_000 },
    async (wire) => {
      const run = await runFaults({ wire, calls: CALLS, seed: 7, firstByteMs: FIRST_BYTE_MS });
      expect(run.wrong).toEqual([]);
      expect(Object.values(run.counts).reduce((sum, calls) => sum + calls, 0)).toBe(CALLS);
      expect(Object.keys(run.counts)).toHaveLength(13);
      for (const calls of Object.values(run.counts)) expect(calls).toBeGreaterThanOrEqual(3);

      // No call is left at the engine, and each side keeps no more connections than had calls at once.
      for (const { connections, calls } of run.engine) {
        expect(calls).toBe(0);
        expect(connections).toBeLessThanOrEqual(8);
      }
      const [first, , last] = run.held;
      for (const { resources } of run.held) expect(resources["TCPSocketWrap"] ?? 0).toBeLessThanOrEqual(16);
      expect((last?.heapBytes ?? Number.NaN) - (first?.heapBytes ?? Number.NaN)).toBeLessThan(2 * MIB);
      expect((last?.bufferBytes ?? Number.NaN) - (first?.bufferBytes ?? Number.NaN)).toBeLessThan(2 * MIB);
      expect(last?.unhandled).toEqual([]);
      expect(run.stderr).toBe("");

      // What the engine never computed is not expected to hit; what it did is, as far as it really does.
      expect(run.stillExpected).toEqual([]);
      for (const { expected, observed, prompt } of run.expectations) {
        expect(expected).toBeLessThanOrEqual(observed);
        expect(observed - expected).toBeLessThanOrEqual(prompt / 4);
      }
      for (const { running, reloaded } of run.indexes) expect(reloaded).toEqual(running);
    },
  );
});
