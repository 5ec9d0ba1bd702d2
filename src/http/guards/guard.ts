import type { MiddlewareHandler } from "hono";
import { type GuardedRequest, type HttpEnvironment, untilAnswered } from "../requests/request.js";

/** What a guard decides on a request. */
export interface GuardVerdict {
  /** The rejection; absent: the request passes. */
  readonly rejection?: Response;
  /** Headers of the answer, whatever it is. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** Called once, when the whole answer is sent or the client has disconnected. */
  readonly onAnswered?: () => void;
  /** Called once, when the answer begins. */
  readonly onBegun?: () => void;
}

/**
 * Decides on a request before its body is read, at once where it can. What it throws, or rejects with, is answered as an error.
 */
export type Guard = (request: GuardedRequest) => GuardVerdict | Promise<GuardVerdict>;

/** The verdict on a request that passes, with nothing more to do. */
export const PASSED: GuardVerdict = {};

/** A guard in front of Hono's routes. */
export function guarded(guard: Guard): MiddlewareHandler<HttpEnvironment> {
  return async function guarded(c, next) {
    const { rejection, headers, onAnswered, onBegun } = await guard(c);
    if (rejection !== undefined) return rejection;
    try {
      await (onAnswered === undefined ? next() : untilAnswered(c, next, onAnswered));
    } finally {
      onBegun?.();
    }
    if (headers !== undefined) for (const [name, value] of headers) c.res.headers.set(name, value);
    return undefined;
  };
}
