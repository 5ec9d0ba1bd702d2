import { z } from "zod";
import { ENGINE_MODEL_NAMES, ENGINE_MODELS, type EngineModel } from "../core/index.js";

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

/** What prompts cost, as it is configured: the name of an engine family, or an {@link EngineModel} as JSON. */
export const engineModel = z.string().transform((text, context): EngineModel => {
  const name = ENGINE_MODEL_NAMES.find((known) => known === text);
  if (name !== undefined) return ENGINE_MODELS[name];
  if (!text.trimStart().startsWith("{")) {
    context.addIssue({
      code: "custom",
      message: `must be one of ${ENGINE_MODEL_NAMES.join(", ")}, or an object as JSON`,
    });
    return z.NEVER;
  }
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    context.addIssue({ code: "custom", message: "is no valid JSON" });
    return z.NEVER;
  }
  const read = model.safeParse(given);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues) {
    context.addIssue({ code: "custom", message: path.length === 0 ? message : `${path.join(".")}: ${message}` });
  }
  return z.NEVER;
});
