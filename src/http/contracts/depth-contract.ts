import { z } from "zod";
import type { PlanDepth } from "../../core/index.js";
import type { RequestedDepth } from "../../service/chat/adaptive-depth.js";
import * as depth from "../../service/fields/depth-fields.js";

/*
 * Adaptive depth over the wire: what a chat asks for, and what is said of it.
 */

/** What a chat completion can say of its depth. */
export const depthWanted = z
  .union(
    [
      z.boolean(),
      z.strictObject({
        first_blocks: depth.firstBlocks.nullish().meta({ description: "Memories that are tried first." }),
        growth: depth.growth.nullish().meta({ description: "How many times as many the next try has." }),
        entropy_nats: depth.entropyNats.nullish().meta({
          description: "What the first token's entropy may come to for the engine to count as sure, in nats.",
        }),
        max_probes: depth.maxProbes.nullish().meta({ description: "Tries, at most." }),
        time_limit_ms: depth.timeLimitMs.nullish().meta({ description: "What all tries together may take." }),
      }),
    ],
    {
      // A union says of a wrong field only that no member fits.
      error: ({ code }) => (code === "invalid_union" ? "must be true, false, or an object" : undefined),
    },
  )
  .meta({
    id: "AdaptiveDepth",
    description:
      "Whether the prompt gets few of the retrieved memories first, and more while the engine is unsure of its answer's first token. Default: MEMSTEM_ADAPTIVE_DEPTH.",
  });

/** What it says, as the service takes it. */
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

/** What an answer says of the depth of its prompt. */
export const planDepth = z
  .object({
    retrieved: z.int().meta({ description: "Memories that were retrieved and that no earlier turn gave." }),
    given: z.int().meta({ description: "How many of them are in the prompt." }),
    outcome: z.enum(["sure", "unsure", "few", "fixed_start", "unclear", "unavailable", "failed"]),
    probes: z.array(
      z.object({
        blocks: z.int(),
        entropy_nats: z.number().nullable().meta({ description: "The most that the first token's entropy can be." }),
        prompt_tokens: z.int().nullable(),
        cached_tokens: z.int().nullable(),
      }),
    ),
  })
  .meta({ id: "PlanDepth", description: "Of a chat with adaptive depth: how many memories its prompt got, and why." });

export function writeDepth({ retrieved, given, outcome, probes }: PlanDepth): z.input<typeof planDepth> {
  const written = probes.map(({ blocks, entropy, promptTokens, cachedTokens }) => ({
    blocks,
    entropy_nats: entropy,
    prompt_tokens: promptTokens,
    cached_tokens: cachedTokens,
  }));
  return { retrieved, given, outcome, probes: written };
}

/** A dictionary of structured fields (RFC 9651): `given=10, retrieved=20, outcome=sure, entropies=(1.823 0.412)`, these in nats. */
export function depthHeader({ given, retrieved, outcome, probes }: PlanDepth): string {
  const entropies = probes.map(({ entropy }) => (entropy === null ? "unclear" : entropy.toFixed(3)));
  return `given=${given}, retrieved=${retrieved}, outcome=${outcome}, entropies=(${entropies.join(" ")})`;
}
