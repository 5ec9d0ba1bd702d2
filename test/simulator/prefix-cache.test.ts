import { BlockHashCache } from "../../src/simulator/block-hash-cache.js";
import { RadixCache } from "../../src/simulator/radix-cache.js";
import { describePrefixCache } from "./prefix-cache.suite.js";

describePrefixCache("blocks", {
  open: (limits) => new BlockHashCache(limits),
  blockTokens: 16,
  hitOfRepeat: ({ length }) => Math.max(0, Math.floor((length - 1) / 16) * 16),
});

describePrefixCache("radix", {
  open: (limits) => new RadixCache(limits),
  blockTokens: 10,
  hitOfRepeat: ({ length }) => Math.max(0, length - 1),
});
