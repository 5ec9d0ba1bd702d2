import { BlockHashCache } from "./block-hash-cache.js";
import { anthropicCache, openAiBreakpointCache } from "./breakpoint-cache.js";
import { OpenAiCache } from "./openai-cache.js";
import type { CacheLimits, PrefixCache } from "./prefix-cache.js";
import { RadixCache } from "./radix-cache.js";

/** Simulated caches: vLLM's, SGLang's, OpenAI's before GPT-5.6 and since (explicit breakpoints), Anthropic's. */
export const CACHE_NAMES = ["blocks", "radix", "openai", "openai-breakpoints", "anthropic"] as const;
export type CacheName = (typeof CACHE_NAMES)[number];

const MAKERS: Readonly<Record<CacheName, (limits: CacheLimits) => PrefixCache>> = {
  blocks: (limits) => new BlockHashCache(limits),
  radix: (limits) => new RadixCache(limits),
  openai: (limits) => new OpenAiCache(hosted("openai", limits)),
  "openai-breakpoints": (limits) => openAiBreakpointCache(hosted("openai-breakpoints", limits)),
  anthropic: (limits) => anthropicCache(hosted("anthropic", limits)),
};

/** An empty cache. Without `ttlMs` the engine's own rule holds. Throws a RangeError for a limit that the engine cannot have. */
export function simulatedCache(name: CacheName, limits: CacheLimits = {}): PrefixCache {
  return MAKERS[name](limits);
}

function hosted(name: CacheName, { capacityTokens, ttlMs }: CacheLimits): Pick<CacheLimits, "ttlMs"> {
  if (capacityTokens !== undefined) throw new RangeError(`${name} names no capacity, so none can be simulated`);
  return { ttlMs };
}
