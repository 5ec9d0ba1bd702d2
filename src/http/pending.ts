import type { MiddlewareHandler } from "hono";
import { untilAnswered } from "./answered.js";
import type { HttpEnvironment } from "./environment.js";
import { isOpenAiPath } from "./openai-problem.js";
import { type OnRefused, refuseForNow } from "./refusal.js";

/** What an operator looks at when there is too much to do. */
export const ALWAYS_ANSWERED = new Set(["/healthz", "/metrics"]);

/** How much is being done, and whether more may come. */
export interface PendingParts {
  /** Most requests in work at once. */
  readonly maxPending: number;
  /** Whether the service is on its way to its end. */
  readonly isStopping: () => boolean;
  readonly onRefused: OnRefused;
}

/**
 * Turns requests away with 503 before their body is read: when as many are in work as may be, and when the service is stopping. A request
 * is in work until its answer is out, a chat until the engine begins to answer.
 */
export function limitPending({ maxPending, isStopping, onRefused }: PendingParts): MiddlewareHandler<HttpEnvironment> {
  let pending = 0;
  return async function limitPending(c, next) {
    if (ALWAYS_ANSWERED.has(c.req.path)) return next();
    if (isStopping()) {
      onRefused("stopping");
      return refuseForNow(c, 503, "the service is stopping");
    }
    if (pending >= maxPending) {
      onRefused("pending");
      return refuseForNow(c, 503, `${maxPending} requests are in work already: MEMSTEM_MAX_PENDING`);
    }
    pending++;
    if (isOpenAiPath(c.req.path)) {
      try {
        return await next();
      } finally {
        pending--;
      }
    }
    return untilAnswered(c, next, () => {
      pending--;
    });
  };
}

/** While the service is stopping, closes each connection with its answer: the next request on it would be lost. */
export function closeWhenStopping(isStopping: () => boolean): MiddlewareHandler {
  return async function closeWhenStopping(c, next) {
    await next();
    if (isStopping()) c.res.headers.set("connection", "close");
  };
}
