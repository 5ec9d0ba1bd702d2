import { z } from "zod";
import { DEFAULT_DEPTH, type DepthSettings } from "../core/index.js";
import * as field from "../service/fields/depth-fields.js";

const settings = z.strictObject({
  firstBlocks: field.firstBlocks.default(DEFAULT_DEPTH.firstBlocks),
  growth: field.growth.default(DEFAULT_DEPTH.growth),
  entropyNats: field.entropyNats.default(DEFAULT_DEPTH.entropyNats),
  maxProbes: field.maxProbes.default(DEFAULT_DEPTH.maxProbes),
  timeLimitMs: field.timeLimitMs.default(DEFAULT_DEPTH.timeLimitMs),
});

/** Adaptive depth as it is configured: `off`, `on`, or {@link DepthSettings} as JSON, less what stays as it is by default. Off is null. */
export const adaptiveDepth = z.string().transform((text, context): DepthSettings | null => {
  if (text === "off") return null;
  if (text === "on") return DEFAULT_DEPTH;
  const problem = (message: string) => {
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  };
  if (!text.trimStart().startsWith("{")) return problem("must be off, on, or an object as JSON");
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return problem("is no valid JSON");
  }
  const read = settings.safeParse(given);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues) {
    problem(path.length === 0 ? message : `${path.join(".")}: ${message}`);
  }
  return z.NEVER;
});
