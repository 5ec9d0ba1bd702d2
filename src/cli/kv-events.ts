import type { CachingEngine } from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import {
  followKvEvents,
  type KvEventPackages,
  type KvEventSource,
  readKvEventSources,
} from "../engines/kv-events/kv-events.js";
import { ResidentBlocks } from "../engines/kv-events/resident-blocks.js";
import { OptionalRoute } from "../engines/upstream/optional-route.js";
import type { Upstream } from "../engines/upstream/upstream.js";
import { missingPackages } from "./package.js";
import type { Settings } from "./setting-list.js";
import { usageError } from "./settings.js";

/** Between two attempts to ask an engine that does not answer where it publishes events. */
const RETRY_MS = 10_000;
const TIMEOUT_MS = 5_000;

/** Loads the packages for events; null where they are not installed. Throws `UsageError` where they are required. */
export async function kvEventPackages({ kvEvents }: Settings): Promise<KvEventPackages | null> {
  if (kvEvents === "off") return null;
  const missing = missingPackages("events");
  if (missing !== null) {
    if (kvEvents === "auto") return null;
    throw usageError("MEMPREFIX_KV_EVENTS", missing);
  }
  const [{ Unpackr }, zeromq] = await Promise.all([import("msgpackr"), import("zeromq")]);
  return { zeromq, unpackr: new Unpackr({ int64AsType: "bigint", useRecords: false }) };
}

export interface KvEventOptions {
  readonly sources: "auto" | readonly KvEventSource[];
  readonly packages: KvEventPackages;
  readonly cache: CachingEngine;
  readonly upstream: Upstream;
  readonly now: () => number;
  readonly onFollowed: (source: KvEventSource) => void;
  readonly onFault: (error: unknown) => void;
}

/** Mirrors publishers' events in `cache`. `auto`: publishers that the engine names, if any. Returns what stops it. */
export function startKvEvents({
  sources,
  packages,
  cache,
  upstream,
  now,
  onFollowed,
  onFault,
}: KvEventOptions): () => Promise<void> {
  const ending = new AbortController();
  const followed: Promise<void>[] = [];
  const follow = (source: KvEventSource) => {
    const blocks = new ResidentBlocks();
    cache.residents.push(blocks);
    onFollowed(source);
    const sink = {
      take: blocks.take.bind(blocks),
      lost: () => blocks.forget(false),
      began: () => blocks.forget(true),
    };
    followed.push(followKvEvents(source, sink, packages, ending.signal, onFault));
  };
  const found = sources === "auto" ? discovered(upstream, now, ending.signal) : Promise.resolve(sources);
  const started = found.then((each) => {
    if (!ending.signal.aborted) each.forEach(follow);
  });
  return async () => {
    ending.abort();
    await started;
    await Promise.all(followed);
  };
}

/** Where the engine publishes events, by its own answer; none where it does not say. Never rejects. */
async function discovered(
  upstream: Upstream,
  now: () => number,
  signal: AbortSignal,
): Promise<readonly KvEventSource[]> {
  const route = new OptionalRoute(upstream, now);
  while (!signal.aborted) {
    try {
      const answer = await route.read(
        "/kv_event_sources",
        AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
        {},
      );
      return answer === null ? [] : readKvEventSources(parsedJson(answer), new URL(upstream.name).hostname);
    } catch {
      if (signal.aborted) break;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, RETRY_MS);
        timer.unref();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }
  return [];
}
