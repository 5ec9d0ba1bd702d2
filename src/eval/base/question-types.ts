/** Data sets that an evaluation reads. */
export const DATASETS = ["locomo", "longmemeval"] as const;
export type Dataset = (typeof DATASETS)[number];

export const DATASET_NAMES: Readonly<Record<Dataset, string>> = { locomo: "LoCoMo", longmemeval: "LongMemEval" };

/** LongMemEval's question types, and its questions that cannot be answered, which are a type of their own here. */
export const LONGMEMEVAL_TYPES = [
  "single-session-user",
  "single-session-assistant",
  "single-session-preference",
  "multi-session",
  "temporal-reasoning",
  "knowledge-update",
  "abstention",
] as const;
export type LongMemEvalType = (typeof LONGMEMEVAL_TYPES)[number];

/** LoCoMo's categories are 1 to 5; LongMemEval's types are numbered from here. */
const FIRST_TYPE = 11;

/** The number that records have for a type of LongMemEval. */
export function typeNumber(type: LongMemEvalType): number {
  return FIRST_TYPE + LONGMEMEVAL_TYPES.indexOf(type);
}

/** `Category 2`, or the type's name. */
export function categoryTitle(category: number): string {
  return LONGMEMEVAL_TYPES[category - FIRST_TYPE] ?? `Category ${category}`;
}
