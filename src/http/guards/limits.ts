import { isIPv6 } from "node:net";
import type { Context } from "hono";
import { type Rate, TokenBuckets } from "../../service/base/token-buckets.js";
import { BodyShareError, type OnRejected, rejectForNow } from "../problems/problem.js";
import {
  ALWAYS_ANSWERED,
  type HttpEnvironment,
  isOpenAiPath,
  OPEN_PATHS,
  type PendingSlot,
} from "../requests/request.js";
import { type Guard, PASSED } from "./guard.js";

/** What the limit on requests in flight needs. */
export interface PendingParts {
  readonly pending: PendingRequests;
  /** Most requests in flight. */
  readonly maxPending: number;
  /** Whether the service is shutting down. */
  readonly isStopping: () => boolean;
  readonly onRejected: OnRejected;
}

/**
 * Rejects requests with 503 before their body is read: at the limit of requests in flight, and while the service is stopping. A request is
 * in flight until its answer is sent, a chat until the engine begins to answer.
 */
export function limitPending({ pending, maxPending, isStopping, onRejected }: PendingParts): Guard {
  return function limitPending(c) {
    if (ALWAYS_ANSWERED.has(c.req.path)) return PASSED;
    if (isStopping()) {
      onRejected("stopping");
      return { rejection: rejectForNow(c, 503, "the service is stopping") };
    }
    const entered = pending.enter();
    if (entered === null) {
      onRejected("pending");
      const detail = `${maxPending} requests are in flight already: MEMPREFIX_MAX_PENDING`;
      return { rejection: rejectForNow(c, 503, detail) };
    }
    const { slot, leave } = entered;
    c.set("slot", slot);
    return isOpenAiPath(c.req.path) ? { onBegun: leave } : { onAnswered: leave };
  };
}

/** Limits one key to its share of the requests in flight. Without keys all callers are one, and there is no share. */
export function limitShares(onRejected: OnRejected): Guard {
  return function limitShares(c) {
    const keyId = c.get("keyId") ?? null;
    if (keyId === null || c.get("slot")?.share(`key ${keyId}`) !== false) return PASSED;
    onRejected("pending_share");
    return { rejection: rejectForNow(c, 429, "this key has used up its share of MEMPREFIX_MAX_PENDING") };
  };
}

/**
 * Counts an incomplete body against its address's share of the requests in flight. A request with a key counts against the key instead:
 * tenants may share one proxy's address. Throws {@link BodyShareError}.
 */
export function awaitBody(c: Pick<Context<HttpEnvironment>, "env" | "get">): void {
  if (c.get("keyId") != null) return;
  const address = clientOf(c.env?.incoming?.socket.remoteAddress);
  if (c.get("slot")?.share(`address ${address}`) !== false) return;
  throw new BodyShareError(
    "too many incomplete bodies from this address: its share of MEMPREFIX_MAX_PENDING is used up",
  );
}

/**
 * A client by its socket's address: the IPv4 address, or the /64 that one IPv6 subscriber has. Headers such as `X-Forwarded-For` are not
 * read: they can be forged.
 */
export function clientOf(address: string | undefined): string {
  const text = (address ?? "").replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(text)) return text;
  const [front = "", back] = text.split("::");
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  // A dotted-quad end is two groups.
  const count = (list: readonly string[]) => list.length + (list.at(-1)?.includes(".") ? 1 : 0);
  const [before, after] = [groups(front), groups(back ?? "")];
  const all = [...before, ...Array<string>(Math.max(0, 8 - count(before) - count(after))).fill("0"), ...after];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}

/** A holder may have at most this many times the free slots: three quarters of all where it is alone, and some always stay free. */
const TIMES_WHAT_IS_FREE = 3;

/**
 * The requests in flight. A holder, a key or an address, may have at most {@link TIMES_WHAT_IS_FREE} times the free slots (the dynamic
 * thresholds of shared switch buffers: Choudhury and Hahne, 1998): one holder alone gets three quarters of all, two that want everything
 * three sevenths each.
 */
export class PendingRequests {
  #count = 0;
  /** Slots per holder that has any: bounded by the requests in flight. */
  readonly #held = new Map<string, number>();

  constructor(private readonly max: number) {}

  get count(): number {
    return this.#count;
  }

  /** Takes a slot; null where none is free. `leave` releases it. */
  enter(): { readonly slot: PendingSlot; leave(): void } | null {
    if (this.#count >= this.max) return null;
    this.#count++;
    const holders: string[] = [];
    const share = (holder: string): boolean => {
      const own = this.#held.get(holder) ?? 0;
      // Without this request itself.
      const free = this.max - (this.#count - 1);
      if (own >= TIMES_WHAT_IS_FREE * free) return false;
      this.#held.set(holder, own + 1);
      holders.push(holder);
      return true;
    };
    const leave = () => {
      this.#count--;
      for (const holder of holders) {
        const others = (this.#held.get(holder) ?? 1) - 1;
        if (others === 0) this.#held.delete(holder);
        else this.#held.set(holder, others);
      }
    };
    return { slot: { share }, leave };
  }
}

/** Limits of one key; without keys, of all callers together. */
export interface KeyLimits {
  /** Null: no limit. */
  readonly rate: Rate | null;
  /** Requests whose answer is not fully sent, streams included. Null: no limit. */
  readonly maxConcurrent: number | null;
}

/**
 * Enforces each key's limits with 429 and `Retry-After`. The rate left is in the headers of draft-ietf-httpapi-ratelimit-headers-10.
 *
 * @param clock milliseconds, monotonic
 */
export function limitKeys({ rate, maxConcurrent }: KeyLimits, clock: () => number, onRejected: OnRejected): Guard {
  const buckets = rate === null ? null : new TokenBuckets(rate);
  const window = rate === null ? 0 : Math.max(1, Math.ceil(rate.burst / rate.perSecond));
  const policy = `"key";q=${rate?.burst};w=${window}`;
  /** Requests in flight per key that has any: bounded by all requests in flight. */
  const inFlight = new Map<string, number>();
  const leave = (key: string) => {
    const others = (inFlight.get(key) ?? 1) - 1;
    if (others === 0) inFlight.delete(key);
    else inFlight.set(key, others);
  };
  return function limitKeys(c) {
    if (OPEN_PATHS.has(c.req.path)) return PASSED;
    const key = c.get("keyId") ?? "";
    const before = inFlight.get(key) ?? 0;
    if (maxConcurrent !== null && before >= maxConcurrent) {
      onRejected("concurrency");
      const detail = `${maxConcurrent} requests of this key are in flight already: MEMPREFIX_MAX_CONCURRENT`;
      return { rejection: rejectForNow(c, 429, detail) };
    }
    let left: Readonly<Record<string, string>> = {};
    if (rate !== null && buckets !== null) {
      const { isAllowed, remaining, nextAfterMs } = buckets.take(key, clock());
      const seconds = String(Math.max(1, Math.ceil(nextAfterMs / 1_000)));
      left = { "ratelimit-policy": policy, ratelimit: `"key";r=${remaining};t=${seconds}` };
      if (!isAllowed) {
        onRejected("rate");
        const limit = `${rate.perSecond} requests a second, ${rate.burst} at once`;
        const detail = `this key has used up its rate (${limit}): MEMPREFIX_RATE_PER_SECOND`;
        return { rejection: rejectForNow(c, 429, detail, { ...left, "retry-after": seconds }) };
      }
    }
    if (maxConcurrent === null && rate === null) return PASSED;
    if (maxConcurrent !== null) inFlight.set(key, before + 1);
    return {
      headers: Object.entries(left),
      ...(maxConcurrent === null ? {} : { onAnswered: () => leave(key) }),
    };
  };
}
