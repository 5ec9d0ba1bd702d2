import { BlockHashCache } from "./block-hash-cache.js";
import type { CacheLimits, PrefixCache } from "./prefix-cache.js";
import { RadixCache } from "./radix-cache.js";

/** An empty cache: vLLM's (`blocks`) or SGLang's (`radix`). Throws a RangeError for a capacity that no engine can have. */
export function simulatedCache(name: "blocks" | "radix", limits: CacheLimits = {}): PrefixCache {
  return name === "blocks" ? new BlockHashCache(limits) : new RadixCache(limits);
}
