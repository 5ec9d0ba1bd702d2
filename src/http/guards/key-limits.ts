import type { MiddlewareHandler } from "hono";
import { type OnRefused, refuseForNow } from "../problems/refusal.js";
import { untilAnswered } from "../requests/answered.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { OPEN_PATHS } from "../requests/paths.js";
import { type Rate, TokenBuckets } from "./token-buckets.js";

/** What one key may do; without keys, what everybody together may. */
export interface KeyLimits {
  /** Null: no limit. */
  readonly rate: Rate | null;
  /** Requests that are not answered to their end, streams included. Null: no limit. */
  readonly maxConcurrent: number | null;
}

/**
 * Holds each key to its limits, with 429 and `Retry-After`. Says how much of the rate is left in the headers of
 * draft-ietf-httpapi-ratelimit-headers-10.
 *
 * @param clock milliseconds, monotonic
 */
export function limitKeys(
  { rate, maxConcurrent }: KeyLimits,
  clock: () => number,
  onRefused: OnRefused,
): MiddlewareHandler<HttpEnvironment> {
  const buckets = rate === null ? null : new TokenBuckets(rate);
  const window = rate === null ? 0 : Math.max(1, Math.ceil(rate.burst / rate.perSecond));
  const policy = `"key";q=${rate?.burst};w=${window}`;
  /** By key, those that have any: bounded by the requests that are being served. */
  const underWay = new Map<string, number>();
  return async function limitKeys(c, next) {
    if (OPEN_PATHS.has(c.req.path)) return next();
    const key = c.get("keyId") ?? "";
    const before = underWay.get(key) ?? 0;
    if (maxConcurrent !== null && before >= maxConcurrent) {
      onRefused("concurrency");
      return refuseForNow(c, 429, `${maxConcurrent} requests of this key are under way: MEMSTEM_MAX_CONCURRENT`);
    }
    let left: Readonly<Record<string, string>> = {};
    if (rate !== null && buckets !== null) {
      const { isAllowed, remaining, nextAfterMs } = buckets.take(key, clock());
      const seconds = String(Math.max(1, Math.ceil(nextAfterMs / 1_000)));
      left = { "ratelimit-policy": policy, ratelimit: `"key";r=${remaining};t=${seconds}` };
      if (!isAllowed) {
        onRefused("rate");
        const limit = `${rate.perSecond} requests a second, ${rate.burst} at once`;
        const detail = `this key has used up its rate (${limit}): MEMSTEM_RATE_PER_SECOND`;
        return refuseForNow(c, 429, detail, { ...left, "retry-after": seconds });
      }
    }
    if (maxConcurrent === null) await next();
    else {
      underWay.set(key, before + 1);
      await untilAnswered(c, next, () => {
        const others = (underWay.get(key) ?? 1) - 1;
        if (others === 0) underWay.delete(key);
        else underWay.set(key, others);
      });
    }
    for (const [name, value] of Object.entries(left)) c.res.headers.set(name, value);
    return undefined;
  };
}
