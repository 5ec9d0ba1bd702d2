import { z } from "zod";
import type { Label, MemoryId, PlacedMemory, Plan, Warning } from "../../core/index.js";
import type { StoredAnswer } from "../api/store.js";
import { NumberedNames } from "./numbered-names.js";
import { isArrayOf, isInt, isInts, isText, orNull, rowsOf } from "./row-shapes.js";

const PLACEMENTS = new NumberedNames({ cached_prefix: 0, new: 1, earlier_turn: 2, carried_over: 3 });

const tokens = z.number();
const probe = z.object({
  blocks: z.int(),
  entropy: z.number().nullable(),
  promptTokens: tokens.nullable(),
  cachedTokens: tokens.nullable(),
});
/** Names of policies, reasons, outcomes and warnings are any text: a later version may drop some. Fields that are not listed are kept. */
const plan = z.object({
  retention: z.enum(["keep", "volatile", "ephemeral"]),
  freshStart: z.boolean(),
  layout: z.enum(["single", "conversation"]),
  policy: z.string(),
  expectedCachedTokens: tokens,
  uncachedTokens: tokens,
  totalTokens: tokens,
  searchPath: z.array(z.int()),
  orderChanged: z.boolean(),
  stableMessages: z.int(),
  addedMessages: z.int().optional(),
  epoch: z
    .strictObject({
      began: z.string().nullable(),
      prompts: z.int(),
      leftOut: z.int(),
      headTokens: tokens,
      carriedTokens: tokens,
    })
    .optional(),
  depth: z.strictObject({ outcome: z.string(), probes: z.array(probe), retrieved: z.int(), given: z.int() }).optional(),
}) as unknown as z.ZodType<Plan>;
const warning = z.object({ code: z.string(), message: z.string(), memoryIds: z.array(z.string()).optional() });

/** Label, id, placement, rank, and where it replaces some, their labels. */
type PackedMemory = readonly [number, string, number, number | null, (readonly Label[])?];
const isMemory = isArrayOf({
  first: [isInt, isText, PLACEMENTS.isNumber, orNull(isInt)],
  optional: [isInts],
});

/** The shape of an answer as it is stored; its memories are short arrays, as at k = 100 they are most of what a compose writes. */
export const packedAnswer = z.strictObject({
  m: rowsOf<PackedMemory>("a memory", isMemory),
  plan,
  warnings: z.array(warning as unknown as z.ZodType<Warning>).readonly(),
  grounds: z.object({ settledAt: z.number(), headTokens: tokens }).optional(),
  worker: z.string().optional(),
});

export type PackedAnswer = z.output<typeof packedAnswer>;

export function packAnswer({ memories, plan, warnings, grounds, worker }: StoredAnswer): PackedAnswer {
  return {
    m: memories.map(({ label, memoryId, placement, rank, replaces }): PackedMemory => {
      const number = PLACEMENTS.numberOf(placement);
      return replaces.length === 0 ? [label, memoryId, number, rank] : [label, memoryId, number, rank, replaces];
    }),
    plan,
    warnings,
    ...(grounds === null ? {} : { grounds }),
    ...(worker === undefined ? {} : { worker }),
  };
}

export function unpackAnswer({ m, plan, warnings, grounds, worker }: PackedAnswer): StoredAnswer {
  const memories = m.map(
    ([label, memoryId, placement, rank, replaces = []]): PlacedMemory => ({
      label: label as Label,
      memoryId: memoryId as MemoryId,
      placement: PLACEMENTS.nameOf(placement),
      rank,
      replaces,
    }),
  );
  return {
    memories,
    plan,
    warnings,
    grounds: grounds ?? null,
    ...(worker === undefined ? {} : { worker }),
  };
}
