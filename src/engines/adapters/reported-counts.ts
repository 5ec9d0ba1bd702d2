import type { EngineUsage } from "./engine-adapter.js";

/** What stands in a JSON value under these names, one inside the other; undefined where there is no such thing. */
export function reported(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

/** A token count that an engine reported. Null for everything that is none, so that what was not said stays unknown. */
export function reportedCount(value: unknown, ...path: readonly string[]): number | null {
  const count = reported(value, ...path);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** The sum of two counts; null where one of them is unknown. */
export function sumOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

/**
 * One record of what was reported. More cached tokens than the prompt has cannot be true: which of the two is wrong is not known, and a
 * wrong figure of what is cached would mislead the index, so that one becomes unknown.
 */
export function usageRecord(counts: Omit<EngineUsage, "raw">, raw: unknown): EngineUsage {
  const { promptTokens, cachedTokens } = counts;
  const isPossible = promptTokens === null || cachedTokens === null || cachedTokens <= promptTokens;
  return { ...counts, cachedTokens: isPossible ? cachedTokens : null, raw };
}
