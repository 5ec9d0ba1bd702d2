import { isIPv6 } from "node:net";
import type { Context, MiddlewareHandler } from "hono";
import { type OnRejected, rejectForNow } from "../problems/rejection.js";
import { BodyShareError } from "../problems/request-errors.js";
import { untilAnswered } from "../requests/answered.js";
import type { HttpEnvironment, PendingSlot } from "../requests/environment.js";
import { ALWAYS_ANSWERED, isOpenAiPath } from "../requests/paths.js";

/** How much is being done, and whether more may come. */
export interface PendingParts {
  readonly pending: PendingRequests;
  /** Most requests in work at once. */
  readonly maxPending: number;
  /** Whether the service is on its way to its end. */
  readonly isStopping: () => boolean;
  readonly onRejected: OnRejected;
}

/**
 * Turns requests away with 503 before their body is read: when as many are in work as may be, and when the service is stopping. A request
 * is in work until its answer is out, a chat until the engine begins to answer.
 */
export function limitPending({
  pending,
  maxPending,
  isStopping,
  onRejected,
}: PendingParts): MiddlewareHandler<HttpEnvironment> {
  return async function limitPending(c, next) {
    if (ALWAYS_ANSWERED.has(c.req.path)) return next();
    if (isStopping()) {
      onRejected("stopping");
      return rejectForNow(c, 503, "the service is stopping");
    }
    const entered = pending.enter();
    if (entered === null) {
      onRejected("pending");
      return rejectForNow(c, 503, `${maxPending} requests are in work already: MEMSTEM_MAX_PENDING`);
    }
    const { slot, leave } = entered;
    c.set("slot", slot);
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
export function limitShares(onRejected: OnRejected): MiddlewareHandler<HttpEnvironment> {
  return async function limitShares(c, next) {
    const keyId = c.get("keyId") ?? null;
    if (keyId === null || c.get("slot")?.share(`key ${keyId}`) !== false) return next();
    onRejected("pending_share");
    return rejectForNow(c, 429, "this key has its share of MEMSTEM_MAX_PENDING: what is left is for others");
  };
}

/**
 * A body is waited for: one address may keep the service waiting in so many places only. A request with a key has its slot in the key's
 * share already, and tenants may have one proxy's address. Throws {@link BodyShareError}.
 */
export function awaitBody(c: Context<HttpEnvironment>): void {
  if (c.get("keyId") != null) return;
  const address = clientOf(c.env?.incoming?.socket.remoteAddress);
  if (c.get("slot")?.share(`address ${address}`) !== false) return;
  throw new BodyShareError("more bodies of this address are waited for than its share of MEMSTEM_MAX_PENDING");
}

/** While the service is stopping, closes each connection with its answer: the next request on it would be lost. */
export function closeWhenStopping(isStopping: () => boolean): MiddlewareHandler {
  return async function closeWhenStopping(c, next) {
    await next();
    if (isStopping()) c.res.headers.set("connection", "close");
  };
}

/**
 * Whose connection it is, as far as its address says: an IPv4 address, or the /64 that one subscriber has of IPv6. It is the socket's own:
 * what a header says of it (`X-Forwarded-For`) can be anything.
 */
export function clientOf(address: string | undefined): string {
  const text = (address ?? "").replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(text)) return text;
  const [front = "", back] = text.split("::");
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  // A dotted end stands for two groups.
  const count = (list: readonly string[]) => list.length + (list.at(-1)?.includes(".") ? 1 : 0);
  const [before, after] = [groups(front), groups(back ?? "")];
  const all = [...before, ...Array<string>(Math.max(0, 8 - count(before) - count(after))).fill("0"), ...after];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}

/** A holder may have so many times as much as is free: alone three quarters of all, and whatever several have, something stays free. */
const TIMES_WHAT_IS_FREE = 3;

/**
 * The requests in work. One holder, a key or an address, may have as much as leaves something free for others: at most
 * {@link TIMES_WHAT_IS_FREE} times what is free (the dynamic thresholds of shared switch buffers: Choudhury and Hahne, 1998). With none
 * beside it that is three quarters of all; two that want everything get three sevenths each.
 */
export class PendingRequests {
  #count = 0;
  /** By holder, those that have any: bounded by the requests in work. */
  readonly #held = new Map<string, number>();

  constructor(private readonly max: number) {}

  get count(): number {
    return this.#count;
  }

  /** Takes a slot, and gives what frees it; null where there is none. */
  enter(): { readonly slot: PendingSlot; leave(): void } | null {
    if (this.#count >= this.max) return null;
    this.#count++;
    const holders: string[] = [];
    const share = (holder: string): boolean => {
      const own = this.#held.get(holder) ?? 0;
      // As it was before this one came.
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
