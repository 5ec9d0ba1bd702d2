import type { MiddlewareHandler } from "hono";
import { CHAT_PATH } from "./chat-contract.js";
import type { HttpEnvironment } from "./environment.js";
import { ALWAYS_ANSWERED } from "./pending.js";
import { type OnRefused, refuseForNow } from "./refusal.js";

/** How far behind the service may fall. */
export interface LagParts {
  /** Milliseconds that the requests which came together may take, up to the one that is turned away. */
  readonly maxLagMs: number;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
  readonly onRefused: OnRefused;
}

/**
 * Turns requests away with 503 when more come than can be served. What comes while others are served is taken up together, one after the
 * other, and answered at the end: the longer that takes, the more come meanwhile. So where it took longer than `maxLagMs` once, the rest of
 * the next that come together is turned away after as long, which costs a fraction of serving them. A burst by itself is served.
 *
 * A chat is not turned away: it goes on as it came, without being planned and stored. Its engine would have had it without memstem.
 */
export function limitLag({ maxLagMs, clock, onRefused }: LagParts): MiddlewareHandler<HttpEnvironment> {
  let began: number | null = null;
  let wasLong = false;
  const end = () => {
    wasLong = began !== null && clock() - began > maxLagMs;
    began = null;
  };
  return async function limitLag(c, next) {
    if (began === null) {
      began = clock();
      setImmediate(end);
    } else if (wasLong && clock() - began > maxLagMs && !ALWAYS_ANSWERED.has(c.req.path)) {
      if (c.req.path === CHAT_PATH) {
        c.set("isShed", true);
        return next();
      }
      onRefused("lag");
      return refuseForNow(c, 503, "more requests come than can be served: MEMSTEM_MAX_LAG_MS");
    }
    return next();
  };
}
