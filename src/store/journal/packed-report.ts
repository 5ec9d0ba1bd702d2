import { z } from "zod";
import { DIAGNOSING_PROVIDERS, DIAGNOSIS_OUTCOMES } from "../../core/index.js";
import type { EngineReport } from "../api/store.js";

/** The shape of an engine's report as it is stored. */
export const packedReport = z.strictObject({
  promptTokens: z.int().optional(),
  cachedTokens: z.int().optional(),
  ttftMs: z.number().optional(),
  diagnosis: z
    .strictObject({
      provider: z.enum(DIAGNOSING_PROVIDERS),
      outcome: z.enum(DIAGNOSIS_OUTCOMES),
      reason: z.string().nullable(),
      missedTokens: z.int().nullable(),
      reusableTokens: z.int().nullable(),
      comparedWith: z.string().nullable(),
    })
    .optional(),
}) as unknown as z.ZodType<EngineReport>;
