import type { IncomingMessage } from "node:http";
import { AbandonedRequestError } from "../../service/base/errors.js";
import { SlowBodyError } from "../problems/request-errors.js";

/** How fast a request's body must come. */
export interface BodyPace {
  /** Milliseconds that may pass without a byte, and that a body may take beside what its bytes are given. */
  readonly idleMs: number;
  /** What a body has to bring in a second, on average; null: it may take as long as it likes, byte by byte. */
  readonly bytesPerSecond: number | null;
}

/** A body that is not whole after so many milliseconds of waiting is one that is waited for. Others come in a few packets. */
const AWAITED_AFTER_MS = 250;

/** How a body is read. */
export interface BodyChunksParts {
  readonly pace: BodyPace;
  /** Called once, when the body turns out to be one that is waited for. What it throws ends the reading. */
  readonly onAwaited?: () => void;
}

/**
 * A request's body as it comes. Time counts only while bytes are waited for, so a reader may take as long as it likes. Throws
 * {@link SlowBodyError}, and {@link AbandonedRequestError} where the client goes away before its end.
 */
export async function* bodyChunks(
  incoming: IncomingMessage,
  { pace, onAwaited }: BodyChunksParts,
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
      // All of it was there, as it mostly is: its end is told a little later.
      if (incoming.complete && incoming.readableLength === 0) return;
      if (!isListening) {
        isListening = true;
        for (const event of events) incoming.on(event, on);
      }
      const most = Math.min(pace.idleMs - silentMs, leftMs(pace, received, waitedMs));
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
      if (silentMs >= pace.idleMs) throw silent(pace);
      if (leftMs(pace, received, waitedMs) <= 0) throw tooSlow(pace);
      if (isAwaited || waitedMs < AWAITED_AFTER_MS) continue;
      isAwaited = true;
      onAwaited?.();
    }
  } finally {
    if (isListening) for (const event of events) incoming.off(event, on);
  }
}

/** Milliseconds that may still be waited, for as many bytes as came. */
function leftMs({ idleMs, bytesPerSecond }: BodyPace, received: number, waitedMs: number): number {
  if (bytesPerSecond === null) return Number.POSITIVE_INFINITY;
  return idleMs + (received / bytesPerSecond) * 1_000 - waitedMs;
}

function silent({ idleMs }: BodyPace): SlowBodyError {
  return new SlowBodyError("MEMSTEM_BODY_TIMEOUT_MS", `no byte of the body came for ${idleMs} ms`);
}

function tooSlow({ bytesPerSecond }: BodyPace): SlowBodyError {
  return new SlowBodyError(
    "MEMSTEM_BODY_BYTES_PER_SECOND",
    `the body came with less than ${bytesPerSecond} bytes a second`,
  );
}
