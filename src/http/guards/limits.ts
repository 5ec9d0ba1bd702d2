import type { Context } from "hono";
import { type OnRejected, rejectForNow } from "../problems/problem.js";
import { ALWAYS_ANSWERED, type HttpEnvironment, isOpenAiPath, isUpload } from "../requests/request.js";
import { type Guard, PASSED } from "./guard.js";

export interface BodyLimits {
  /** Of one body. */
  readonly maxBodyBytes: number;
  /** Longest wait for a body's next byte. */
  readonly silentMs: number;
}

/** Limits that no setting changes. */
export interface HttpLimits extends BodyLimits {
  /** Of all incomplete bodies together. */
  readonly maxBytesRead: number;
  /** Requests whose bodies have arrived and whose answers are not sent. */
  readonly maxInFlight: number;
  /** Longest time that a client may leave an answer unread. */
  readonly answerTimeoutMs: number;
}

const MIB = 1024 * 1024;

export const HTTP_LIMITS: HttpLimits = {
  // A million tokens of context are some 4 MB of text; images in base64 need the rest.
  maxBodyBytes: 32 * MIB,
  silentMs: 15_000,
  maxBytesRead: 256 * MIB,
  // What one process composes in about half a second.
  maxInFlight: 256,
  // As long as a phone may suspend a page in the background.
  answerTimeoutMs: 120_000,
};

/** An amount shared by all holders, of which one holder may take half. */
export class SharedBound {
  #used = 0;
  readonly #held = new Map<string, number>();

  constructor(private readonly max: number) {}

  get used(): number {
    return this.#used;
  }

  /** Takes an amount for these holders. False, and nothing is taken, where it exceeds the rest or a holder's share. */
  take(amount: number, holders: readonly string[]): boolean {
    if (this.#used + amount > this.max) return false;
    if (holders.some((holder) => (this.#held.get(holder) ?? 0) + amount > Math.ceil(this.max / 2))) return false;
    this.#add(amount, holders);
    return true;
  }

  give(amount: number, holders: readonly string[]): void {
    this.#add(-amount, holders);
  }

  #add(amount: number, holders: readonly string[]): void {
    this.#used += amount;
    for (const holder of holders) {
      const held = (this.#held.get(holder) ?? 0) + amount;
      if (held === 0) this.#held.delete(holder);
      else this.#held.set(holder, held);
    }
  }
}

/** The holder of a bound: the tenant. Without keys there is only one caller, and nothing to share. */
export function holdersOf(c: Pick<Context<HttpEnvironment>, "get">): readonly string[] {
  const tenant = c.get("tenant");
  return tenant === undefined ? [] : [`tenant ${tenant}`];
}

export function rejectWhileStopping(isStopping: () => boolean, onRejected: OnRejected): Guard {
  return function rejectWhileStopping(c) {
    if (!isStopping() || ALWAYS_ANSWERED.has(c.req.path)) return PASSED;
    onRejected("stopping");
    return { rejection: rejectForNow(c, "the service is stopping") };
  };
}

/**
 * Limits the requests in flight, over the whole service and per tenant. A request is in flight from the end of its body until its answer is
 * sent; a chat until the engine begins to answer. Uploads, which are in flight while they arrive, get at most half.
 */
export function limitInFlight(inFlight: SharedBound, max: number, onRejected: OnRejected): Guard {
  return function limitInFlight(c) {
    if (ALWAYS_ANSWERED.has(c.req.path)) return PASSED;
    const holders = [...holdersOf(c), ...(isUpload(c) ? ["uploads"] : [])];
    if (!inFlight.take(1, holders)) {
      onRejected("in_flight");
      return {
        rejection: rejectForNow(c, `too many requests are in flight: at most ${max}, half of them of one tenant`),
      };
    }
    const leave = () => inFlight.give(1, holders);
    return isOpenAiPath(c.req.path) ? { onBegun: leave } : { onAnswered: leave };
  };
}
