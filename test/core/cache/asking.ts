import type { CacheHandle } from "../../../src/core/cache/engine-cache.js";
import type { PredictedCache } from "../../../src/core/cache/predicted-cache.js";

export const handle = (name: string | number) => String(name) as CacheHandle;
export const NO_HEAD = { digest: "", tokens: 0 };
export const ENDLESS = Number.POSITIVE_INFINITY;

/** Prompts of one engine, one a second, each with its own request id. */
export class Asking<C extends PredictedCache = PredictedCache> {
  #at = 0;
  #requests = 0;
  constructor(readonly cache: C) {}

  /** A stream's next prompt, of which `known` tokens were sent before, and so many are found cached; none: it is not reported. */
  ask(stream: string, total: number, known = 0, found: number | null = null): void {
    const request = handle(this.#requests++);
    const cached = Math.min(known, this.cache.lookup(stream).residentTokens);
    this.#at += 1_000;
    this.cache.admit({ stream, user: stream, handle: request, at: this.#at, total, cached, known, head: NO_HEAD });
    if (found !== null) this.cache.report(request, { cachedTokens: found, promptTokens: total }, this.#at);
  }

  /** The newest prompt's client leaves. */
  leave(): void {
    this.cache.report(this.newest, null, this.#at);
  }

  get newest(): CacheHandle {
    return handle(this.#requests - 1);
  }
}
