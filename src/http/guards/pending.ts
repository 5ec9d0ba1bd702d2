import type { Context, MiddlewareHandler } from "hono";
import { type OnRefused, refuseForNow } from "../problems/refusal.js";
import { BodyShareError } from "../problems/request-errors.js";
import { untilAnswered } from "../requests/answered.js";
import type { HttpEnvironment } from "../requests/environment.js";
import { ALWAYS_ANSWERED, isOpenAiPath } from "../requests/paths.js";
import { clientOf } from "./client-address.js";
import type { PendingRequests } from "./pending-requests.js";

/** How much is being done, and whether more may come. */
export interface PendingParts {
  readonly pending: PendingRequests;
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
export function limitPending({
  pending,
  maxPending,
  isStopping,
  onRefused,
}: PendingParts): MiddlewareHandler<HttpEnvironment> {
  return async function limitPending(c, next) {
    if (ALWAYS_ANSWERED.has(c.req.path)) return next();
    if (isStopping()) {
      onRefused("stopping");
      return refuseForNow(c, 503, "the service is stopping");
    }
    const entered = pending.enter();
    if (entered === null) {
      onRefused("pending");
      return refuseForNow(c, 503, `${maxPending} requests are in work already: MEMSTEM_MAX_PENDING`);
    }
    const { place, leave } = entered;
    c.set("place", place);
    if (isOpenAiPath(c.req.path)) {
      try {
        return await next();
      } finally {
        leave();
      }
    }
    return untilAnswered(c, next, leave);
  };
}

/** Keeps one key from having all of what may be in work. Without keys everybody is the same caller. */
export function limitShares(onRefused: OnRefused): MiddlewareHandler<HttpEnvironment> {
  return async function limitShares(c, next) {
    const keyId = c.get("keyId") ?? null;
    if (keyId === null || c.get("place")?.share(`key ${keyId}`) !== false) return next();
    onRefused("pending_share");
    return refuseForNow(c, 429, "this key has its share of MEMSTEM_MAX_PENDING: what is left is for others");
  };
}

/**
 * A body is waited for: one address may keep the service waiting in so many places only. A request with a key has its place in the key's
 * share already, and tenants may have one proxy's address. Throws {@link BodyShareError}.
 */
export function awaitBody(c: Context<HttpEnvironment>): void {
  if (c.get("keyId") != null) return;
  const address = clientOf(c.env?.incoming?.socket.remoteAddress);
  if (c.get("place")?.share(`address ${address}`) !== false) return;
  throw new BodyShareError("more bodies of this address are waited for than its share of MEMSTEM_MAX_PENDING");
}

/** While the service is stopping, closes each connection with its answer: the next request on it would be lost. */
export function closeWhenStopping(isStopping: () => boolean): MiddlewareHandler {
  return async function closeWhenStopping(c, next) {
    await next();
    if (isStopping()) c.res.headers.set("connection", "close");
  };
}
