import { z } from "zod";
import type { EngineReport } from "../api/store.js";

/** The shape of an engine's report as it is stored. */
export const packedReport = z.strictObject({
  promptTokens: z.int().optional(),
  cachedTokens: z.int().optional(),
  ttftMs: z.number().optional(),
}) as unknown as z.ZodType<EngineReport>;
