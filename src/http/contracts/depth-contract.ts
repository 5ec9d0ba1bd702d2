import { z } from "zod";
import type { PlanDepth } from "../../core/index.js";
import type { RequestedDepth } from "../../service/chat/adaptive-depth.js";
import * as depth from "../../service/fields/depth-fields.js";

/*
 * Adaptive depth: the wish in a chat's settings, the outcome in answers and in a header.
 */

/** The wish in a chat's settings. */
export const depthWanted = z
  .union(
    [
      z.boolean(),
      z.strictObject({
        first_blocks: depth.firstBlocks.nullish().meta({ description: "Memories in the first probe." }),
        growth: depth.growth.nullish().meta({ description: "Factor by which each further probe has more memories." }),
        entropy_nats: depth.entropyNats.nullish().meta({
          description: "Highest entropy of the first token at which the engine counts as sure, in nats.",
        }),
        max_probes: depth.maxProbes.nullish().meta({ description: "Most probes." }),
        time_limit_ms: depth.timeLimitMs
          .nullish()
          .meta({ description: "Time limit of all probes together, in milliseconds." }),
      }),
    ],
    {
      // A union's own message says only that no member matches.
      error: ({ code }) => (code === "invalid_union" ? "must be true, false, or an object" : undefined),
    },
  )
  .meta({
    id: "AdaptiveDepth",
    description:
      "Start with few of the retrieved memories; add more while the entropy of the answer's first token is high. Default: `MEMSTEM_ADAPTIVE_DEPTH`.",
  });

/** The wish as the service takes it; null: none. */
export function depthWish(given: z.output<typeof depthWanted> | null | undefined): RequestedDepth {
  if (given == null || typeof given === "boolean") return given ?? null;
  const named = {
    firstBlocks: given.first_blocks,
    growth: given.growth,
    entropyNats: given.entropy_nats,
    maxProbes: given.max_probes,
    timeLimitMs: given.time_limit_ms,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value != null));
}

/** The outcome, in a plan. */
export const planDepth = z
  .object({
    retrieved: z.int().meta({ description: "Retrieved memories that no earlier turn gave." }),
    given: z.int().meta({ description: "Those of them in the prompt." }),
    outcome: z.enum(["sure", "unsure", "few", "fixed_start", "unclear", "unavailable", "failed"]),
    probes: z.array(
      z.object({
        blocks: z.int(),
        entropy_nats: z
          .number()
          .nullable()
          .meta({ description: "Upper bound of the first token's entropy, in nats; null: unknown." }),
        prompt_tokens: z.int().nullable(),
        cached_tokens: z.int().nullable(),
      }),
    ),
  })
  .meta({ id: "PlanDepth", description: "How many memories a prompt with adaptive depth got, and why." });

/** The JSON of {@link planDepth}. */
export function writeDepth({ retrieved, given, outcome, probes }: PlanDepth): z.input<typeof planDepth> {
  const written = probes.map(({ blocks, entropy, promptTokens, cachedTokens }) => ({
    blocks,
    entropy_nats: entropy,
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
  }));
  return { retrieved, given, outcome, probes: written };
}

/** The header's value: a dictionary of structured fields (RFC 9651), entropies in nats. */
export function depthHeader({ given, retrieved, outcome, probes }: PlanDepth): string {
  const entropies = probes.map(({ entropy }) => (entropy === null ? "unclear" : entropy.toFixed(3)));
  return `given=${given}, retrieved=${retrieved}, outcome=${outcome}, entropies=(${entropies.join(" ")})`;
}
