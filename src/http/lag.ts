import type { RequestListener } from "node:http";
import type { MiddlewareHandler } from "hono";
import { CHAT_PATH } from "./chat-contract.js";
import type { HttpEnvironment } from "./environment.js";
import { isOpenAiPath } from "./openai-problem.js";
import { ALWAYS_ANSWERED } from "./pending.js";
import { problem } from "./problem.js";
import { type OnRefused, RETRY_SOON, refuseForNow } from "./refusal.js";
import { SECURITY_HEADERS } from "./security-headers.js";

/**
 * How far the service is behind. What comes while others are served is taken up together, one after the other, and answered at the end: the
 * longer that takes, the more come meanwhile. So where it took longer than `maxLagMs` once, the rest of the next that come together is to
 * be turned away after as long, which costs a fraction of serving them. A burst by itself is served.
 */
export class Lag {
  #began: number | null = null;
  #wasLong = false;

  /**
   * @param maxLagMs milliseconds that the requests which came together may take, up to the one that is turned away
   * @param clock milliseconds, monotonic
   */
  constructor(
    private readonly maxLagMs: number,
    private readonly clock: () => number,
  ) {}

  /** Whether what comes now is to be turned away. To be asked when it comes, before anything is done for it. */
  isTooLong(): boolean {
    if (this.#began !== null) return this.#wasLong && this.clock() - this.#began > this.maxLagMs;
    this.#began = this.clock();
    setImmediate(() => {
      this.#wasLong = this.#began !== null && this.clock() - this.#began > this.maxLagMs;
      this.#began = null;
    });
    return false;
  }
}

const DETAIL = "more requests come than can be served: MEMSTEM_MAX_LAG_MS";

/**
 * Turns requests away with 503 when more come than can be served. A chat is not turned away: it goes on as it came, without being planned
 * and stored. Its engine would have had it without memstem.
 */
export function limitLag(lag: Lag, onRefused: OnRefused): MiddlewareHandler<HttpEnvironment> {
  return async function limitLag(c, next) {
    if (!lag.isTooLong() || ALWAYS_ANSWERED.has(c.req.path)) return next();
    if (c.req.path === CHAT_PATH) {
      c.set("isShed", true);
      return next();
    }
    onRefused("lag");
    return refuseForNow(c, 503, DETAIL);
  };
}

const BODY = JSON.stringify(problem(503, DETAIL));
const HEAD = {
  ...Object.fromEntries(SECURITY_HEADERS),
  ...RETRY_SOON,
  "content-type": "application/problem+json",
  "content-length": Buffer.byteLength(BODY),
};

/**
 * The same before Node's requests get to the app, where turning one away costs a tenth: at twice what can be served, half of the work would
 * be turning away. What it turns away is counted, and in no log.
 */
export function turningAway(lag: Lag, onRefused: OnRefused, listener: RequestListener): RequestListener {
  return (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    if (!lag.isTooLong() || ALWAYS_ANSWERED.has(path) || isOpenAiPath(path)) return listener(request, response);
    onRefused("lag");
    return response.writeHead(503, HEAD).end(BODY);
  };
}
