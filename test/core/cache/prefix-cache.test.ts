import { SimulatedCache } from "../../../src/core/cache/simulated-cache.js";
import { describePrefixCache } from "./prefix-cache.suite.js";

describePrefixCache("blocks", {
  open: (limits) => new SimulatedCache("blocks", limits),
  blockTokens: 16,
  hitOfRepeat: ({ length }) => Math.max(0, Math.floor((length - 1) / 16) * 16),
});

describePrefixCache("radix", {
  open: (limits) => new SimulatedCache("radix", limits),
  blockTokens: 10,
  hitOfRepeat: ({ length }) => Math.max(0, length - 1),
});
