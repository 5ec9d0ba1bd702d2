import { LruMap } from "../../core/index.js";

/** A rate limit: `perSecond` on average, bursts of up to `burst`. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export interface Taken {
  readonly isAllowed: boolean;
  /** Attempts that would be allowed now. */
  readonly remaining: number;
  /** Milliseconds until one more is allowed than now. */
  readonly nextAfterMs: number;
}

/** Most buckets. A dropped one starts full again, so this must exceed the number of concurrent callers. */
const MAX_BUCKETS = 10_000;

/** A token bucket per caller, refilled at a steady rate; the least recently used bucket is dropped first. */
export class TokenBuckets {
  readonly #buckets: LruMap<string, { tokens: number; at: number }>;

  constructor(
    private readonly rate: Rate,
    maxBuckets = MAX_BUCKETS,
  ) {
    this.#buckets = new LruMap(maxBuckets);
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** @param now milliseconds, monotonic */
  take(caller: string, now: number): Taken {
    const { perSecond, burst } = this.rate;
    const bucket = this.#buckets.get(caller) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1_000) * perSecond);
    bucket.at = Math.max(bucket.at, now);
    const isAllowed = bucket.tokens >= 1;
    if (isAllowed) bucket.tokens -= 1;
    this.#buckets.set(caller, bucket);
    const remaining = Math.floor(bucket.tokens);
    return { isAllowed, remaining, nextAfterMs: ((remaining + 1 - bucket.tokens) / perSecond) * 1_000 };
  }
}
