import type { EngineCache } from "../../core/index.js";
import { readCacheMetrics } from "../../engines/upstream/cache-metrics.js";
import { wholeOf } from "../../engines/upstream/converted-body.js";
import { OptionalRoute } from "../../engines/upstream/optional-route.js";
import type { Upstream } from "../../engines/upstream/upstream.js";
import { OWN_NAME } from "../../engines/upstream/upstream-headers.js";

/** Milliseconds between two readings, while prompts are composed. */
const INTERVAL_MS = 2_000;
/** Milliseconds that a reading may take. */
const TIMEOUT_MS = 5_000;
/** A longer exposition is not read. */
const MOST_BYTES = 8 * 1024 * 1024;
const METRICS = {
  method: "GET",
  path: "/metrics",
  query: "",
  headers: [OWN_NAME],
  body: null,
} as const;

export interface CacheReadingOptions {
  readonly cache: EngineCache;
  readonly upstream: Upstream;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds between two readings. Default 2,000. */
  readonly intervalMs?: number;
}

/**
 * Reads what the engine says of its prefix cache, from `/metrics` beside its API: at once, and again while prompts are composed. Nothing waits
 * for it, and an engine that says nothing, nonsense or too much is planned for as if it had not been asked.
 *
 * @returns stops it
 */
export function startCacheReadings({
  cache,
  upstream,
  now,
  intervalMs = INTERVAL_MS,
}: CacheReadingOptions): () => void {
  const route = new OptionalRoute(upstream, now);
  const ending = new AbortController();
  let promptsRead = -1;
  let isReading = false;
  const read = async () => {
    if (isReading || ending.signal.aborted || cache.prompts === promptsRead) return;
    isReading = true;
    const { prompts } = cache;
    try {
      const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const call = { ...METRICS, isBackground: true };
      const answer = await route.send(call, signal);
      if (answer?.status !== 200) return;
      const exposition = await wholeOf(answer.body, upstream.name, MOST_BYTES);
      cache.read(readCacheMetrics(exposition.toString("utf8")), now());
      promptsRead = prompts;
    } catch {
      // Too long, or broken off. An engine that cannot be reached is reported where a prompt is sent to it.
    } finally {
      isReading = false;
    }
  };
  void read();
  const timer = setInterval(() => void read(), intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    ending.abort();
  };
}
