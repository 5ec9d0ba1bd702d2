import { z } from "zod";
import {
  DEFAULT_DEPTH,
  type DepthSettings,
  ENGINE_MODEL_NAMES,
  ENGINE_MODELS,
  type EngineModel,
} from "../core/index.js";
import * as field from "../service/fields/fields.js";
import * as filters from "../service/fields/memory-filters.js";

/*
 * Settings whose value is JSON, or a name that stands for some. A value arrives as the text of an environment variable or option; what
 * leaves is checked, or an issue with the path of the wrong field.
 */

const atLeastZero = z.number().min(0, "must not be negative");
const model = z.strictObject({
  cost: z.discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("time"),
      fixedMs: atLeastZero,
      perTokenMs: atLeastZero,
      perPairMs: atLeastZero,
    }),
    z.strictObject({ kind: z.literal("money"), uncached: atLeastZero, written: atLeastZero, cached: atLeastZero }),
  ]),
  blockTokens: z.int().min(1).default(1),
  minimumPrefixTokens: z.int().min(0).default(0),
});

const depth = z.strictObject({
  firstBlocks: field.firstBlocks.default(DEFAULT_DEPTH.firstBlocks),
  growth: field.growth.default(DEFAULT_DEPTH.growth),
  entropyNats: field.entropyNats.default(DEFAULT_DEPTH.entropyNats),
  maxProbes: field.maxProbes.default(DEFAULT_DEPTH.maxProbes),
  timeLimitMs: field.timeLimitMs.default(DEFAULT_DEPTH.timeLimitMs),
});

/** What prompts cost: the name of an engine family, or an {@link EngineModel} as JSON. */
export const engineModel = z.string().transform((text, context): EngineModel => {
  const name = ENGINE_MODEL_NAMES.find((known) => known === text);
  if (name !== undefined) return ENGINE_MODELS[name];
  return readObject(text, model, context, `must be one of ${ENGINE_MODEL_NAMES.join(", ")}, or an object as JSON`);
});

/** Adaptive depth: `off` (null), `on`, or the {@link DepthSettings} that differ from the defaults, as JSON. */
export const adaptiveDepth = z.string().transform((text, context): DepthSettings | null => {
  if (text === "off") return null;
  if (text === "on") return DEFAULT_DEPTH;
  return readObject(text, depth, context, "must be off, on, or an object as JSON");
});

/** Conditions of a search in Mem0's form, as JSON. */
export const memoryFilters = z
  .string()
  .transform((text, context) =>
    readObject(text, filters.memoryFilters, context, 'must be an object as JSON, such as {"topic": "food"}'),
  );

/** Reads an object from JSON; what is wrong with it becomes issues of the setting. */
function readObject<S extends z.ZodType>(
  text: string,
  schema: S,
  context: z.RefinementCtx<string>,
  expected: string,
): z.output<S> {
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  if (!text.trimStart().startsWith("{")) {
    refuse(expected);
    return z.NEVER;
  }
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    refuse("is not valid JSON");
    return z.NEVER;
  }
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues) {
    refuse(path.length === 0 ? message : `${path.join(".")}: ${message}`);
  }
  return z.NEVER;
}
