import { BlockHashCache } from "../../src/simulator/block-hash-cache.js";
import { anthropicCache, openAiBreakpointCache } from "../../src/simulator/breakpoint-cache.js";
import { OpenAiCache } from "../../src/simulator/openai-cache.js";
import type { SimulatedPrompt } from "../../src/simulator/prefix-cache.js";
import { RadixCache } from "../../src/simulator/radix-cache.js";
import { describePrefixCache } from "./prefix-cache.suite.js";

const HOSTED = {
  "never holds more than its capacity, and hits no more than without one": "its provider names no capacity",
  "takes a capacity that is never reached for none": "its provider names no capacity",
};

/** Short, so that small prompts are cached. */
const MINIMUM_TOKENS = 40;

function hitAtLastBreakpoint({ breakpoints = [] }: SimulatedPrompt): number {
  const last = breakpoints.at(-1) ?? 0;
  return last < MINIMUM_TOKENS ? 0 : last;
}

describePrefixCache("blocks", {
  open: (limits) => new BlockHashCache(limits),
  blockTokens: 16,
  hitOfRepeat: ({ tokens }) => Math.max(0, Math.floor((tokens.length - 1) / 16) * 16),
});

describePrefixCache("radix", {
  open: (limits) => new RadixCache(limits),
  blockTokens: 10,
  hitOfRepeat: ({ tokens }) => Math.max(0, tokens.length - 1),
});

describePrefixCache(
  "openai",
  {
    open: (limits) => new OpenAiCache(limits),
    blockTokens: 300,
    hitOfRepeat: ({ tokens }) => (tokens.length < 1_024 ? 0 : Math.floor(tokens.length / 128) * 128),
  },
  HOSTED,
);

describePrefixCache(
  "anthropic",
  {
    open: ({ ttlMs }) => anthropicCache({ ttlMs, minimumTokens: MINIMUM_TOKENS }),
    blockTokens: 20,
    hitOfRepeat: hitAtLastBreakpoint,
  },
  HOSTED,
);

describePrefixCache(
  "openai-breakpoints",
  {
    open: ({ ttlMs }) => openAiBreakpointCache({ ttlMs, minimumTokens: MINIMUM_TOKENS }),
    blockTokens: 20,
    hitOfRepeat: hitAtLastBreakpoint,
  },
  HOSTED,
);
