import type { MiddlewareHandler } from "hono";
import { type Rate, TokenBuckets } from "../../service/base/token-buckets.js";
import { type OnRejected, rejectForNow } from "../problems/rejection.js";
import { untilAnswered } from "../requests/answered.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { OPEN_PATHS } from "../requests/paths.js";

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
export function limitKeys(
  { rate, maxConcurrent }: KeyLimits,
  clock: () => number,
  onRejected: OnRejected,
): MiddlewareHandler<HttpEnvironment> {
  const buckets = rate === null ? null : new TokenBuckets(rate);
  const window = rate === null ? 0 : Math.max(1, Math.ceil(rate.burst / rate.perSecond));
  const policy = `"key";q=${rate?.burst};w=${window}`;
  /** Requests in flight per key that has any: bounded by all requests in flight. */
  const inFlight = new Map<string, number>();
  return async function limitKeys(c, next) {
    if (OPEN_PATHS.has(c.req.path)) return next();
    const key = c.get("keyId") ?? "";
    const before = inFlight.get(key) ?? 0;
    if (maxConcurrent !== null && before >= maxConcurrent) {
      onRejected("concurrency");
      return rejectForNow(
        c,
        429,
        `${maxConcurrent} requests of this key are in flight already: MEMSTEM_MAX_CONCURRENT`,
      );
    }
    let left: Readonly<Record<string, string>> = {};
    if (rate !== null && buckets !== null) {
      const { isAllowed, remaining, nextAfterMs } = buckets.take(key, clock());
      const seconds = String(Math.max(1, Math.ceil(nextAfterMs / 1_000)));
      left = { "ratelimit-policy": policy, ratelimit: `"key";r=${remaining};t=${seconds}` };
      if (!isAllowed) {
        onRejected("rate");
        const limit = `${rate.perSecond} requests a second, ${rate.burst} at once`;
        const detail = `this key has used up its rate (${limit}): MEMSTEM_RATE_PER_SECOND`;
        return rejectForNow(c, 429, detail, { ...left, "retry-after": seconds });
      }
    }
    if (maxConcurrent === null) await next();
    else {
      inFlight.set(key, before + 1);
      await untilAnswered(c, next, () => {
        const others = (inFlight.get(key) ?? 1) - 1;
        if (others === 0) inFlight.delete(key);
        else inFlight.set(key, others);
      });
    }
    for (const [name, value] of Object.entries(left)) c.res.headers.set(name, value);
    return undefined;
  };
}
