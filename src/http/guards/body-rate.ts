import type { IncomingMessage } from "node:http";
import { AbandonedRequestError } from "../../service/base/errors.js";
import { SlowBodyError } from "../problems/request-errors.js";

/** The minimum data rate of a request's body. */
export interface BodyRate {
  /** Milliseconds that may pass without a byte, and that a body may take on top of what the rate allows. */
  readonly idleMs: number;
  /** Minimum average; null: no minimum, only {@link idleMs}. */
  readonly bytesPerSecond: number | null;
}

/** A body counts as incomplete after this many milliseconds of waiting; most arrive within a few packets. */
const AWAITED_AFTER_MS = 250;

/** What reading a body needs. */
export interface BodyChunksParts {
  readonly rate: BodyRate;
  /** Called once, when the body counts as incomplete. What it throws ends the reading. */
  readonly onAwaited?: () => void;
}

/**
 * A request's body in chunks. Only time spent waiting for bytes counts, so a slow reader costs the client nothing. Throws
 * {@link SlowBodyError}, and {@link AbandonedRequestError} where the client disconnects before the end.
 */
export async function* bodyChunks(
  incoming: IncomingMessage,
  { rate, onAwaited }: BodyChunksParts,
): AsyncGenerator<Uint8Array, void, undefined> {
  let wake = () => {};
  const on = () => wake();
  const events = ["readable", "end", "error", "close"] as const;
  let isListening = false;
  let received = 0;
  let waitedMs = 0;
  let silentMs = 0;
  let isAwaited = false;
  try {
    for (;;) {
      const chunk = incoming.read() as Uint8Array | null;
      if (chunk !== null) {
        received += chunk.length;
        silentMs = 0;
        yield chunk;
        continue;
      }
      if (incoming.readableEnded) return;
      if (incoming.destroyed) throw new AbandonedRequestError();
      // The whole body was buffered, as mostly: its "end" event is still to come.
      if (incoming.complete && incoming.readableLength === 0) return;
      if (!isListening) {
        isListening = true;
        for (const event of events) incoming.on(event, on);
      }
      const most = Math.min(rate.idleMs - silentMs, leftMs(rate, received, waitedMs));
      const since = performance.now();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, isAwaited ? most : Math.min(most, AWAITED_AFTER_MS - waitedMs));
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      wake = () => {};
      const waited = performance.now() - since;
      waitedMs += waited;
      silentMs += waited;
      if (incoming.readableLength > 0 || incoming.complete) continue;
      if (silentMs >= rate.idleMs) throw silent(rate);
      if (leftMs(rate, received, waitedMs) <= 0) throw tooSlow(rate);
      if (isAwaited || waitedMs < AWAITED_AFTER_MS) continue;
      isAwaited = true;
      onAwaited?.();
    }
  } finally {
    if (isListening) for (const event of events) incoming.off(event, on);
  }
}

/** Milliseconds that may still be waited, given the bytes received. */
function leftMs({ idleMs, bytesPerSecond }: BodyRate, received: number, waitedMs: number): number {
  if (bytesPerSecond === null) return Number.POSITIVE_INFINITY;
  return idleMs + (received / bytesPerSecond) * 1_000 - waitedMs;
}

function silent({ idleMs }: BodyRate): SlowBodyError {
  return new SlowBodyError("MEMSTEM_BODY_TIMEOUT_MS", `no byte of the body arrived for ${idleMs} ms`);
}

function tooSlow({ bytesPerSecond }: BodyRate): SlowBodyError {
  return new SlowBodyError(
    "MEMSTEM_BODY_BYTES_PER_SECOND",
    `the body arrived at less than ${bytesPerSecond} bytes a second`,
  );
}
