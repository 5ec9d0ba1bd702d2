import { type CacheReport, cachedOf, reachOf } from "../cache/cache-report.js";

/* A miss: tokens computed beyond the new turn's own text, with one cause. Decided when a prompt is planned; the engine's report may correct it. */

export const MISS_CAUSES = [
  "first_prompt",
  "new_text",
  "instructions_changed",
  "tools_changed",
  "model_changed",
  "history_changed",
  "memories_changed",
  "expired",
  "evicted",
  "unknown",
] as const;
export type MissCause = (typeof MISS_CAUSES)[number];

export interface Miss {
  readonly cause: MissCause;
  readonly tokens: number;
}

export interface MissFacts {
  /** Tokens before the new turn's own text, … */
  readonly before: number;
  /** … of these, known from this user's earlier prompts, cached or not, … */
  readonly known: number;
  /** … and expected to be cached. */
  readonly cached: number;
  /** Tokens of this turn's memories that earlier prompts had in another place. */
  readonly moved: number;
  /** Whether the user has no earlier prompt. */
  readonly isFirst: boolean;
  /** Whether the prompt continues the conversation's newest one unmodified. */
  readonly isContinued: boolean;
  /** Whether the previous prompt was sent to another model, had other tools, or other instructions. */
  readonly hasOtherModel: boolean;
  readonly hasOtherTools: boolean;
  readonly hasOtherInstructions: boolean;
  /** Whether earlier messages differ from the previous prompt's, or a window's epoch began. */
  readonly hasOtherHistory: boolean;
  readonly hasOtherMemories: boolean;
  /** Milliseconds since the previous prompt; null: unknown. */
  readonly ageMs: number | null;
  /** See `ResidencyModel.ttlMs`. */
  readonly ttlMs: number | null;
}

/** Share of `before` within which a miss is the estimate's own error. */
const ESTIMATE_ERROR = 0.02;

/** Null: only the new turn's own text is computed. */
export function plannedMiss(facts: MissFacts): Miss | null {
  const { before, cached, moved } = facts;
  const tokens = Math.max(0, before - cached) + moved;
  if (tokens === 0) return null;
  const cause = causeOf(facts);
  return cause === "unknown" && tokens <= before * ESTIMATE_ERROR ? null : { cause, tokens };
}

function causeOf(facts: MissFacts): MissCause {
  const { before, known, cached, moved, isContinued } = facts;
  if (facts.isFirst) return "first_prompt";
  if (facts.hasOtherModel) return "model_changed";
  if (facts.hasOtherTools) return "tools_changed";
  if (facts.hasOtherInstructions) return "instructions_changed";
  const gone = Math.max(0, Math.min(known, before) - cached);
  const changed = Math.max(0, before - Math.max(known, cached)) + moved;
  if (gone > changed) return leftBecause(facts);
  if (facts.hasOtherHistory) return "history_changed";
  if (facts.hasOtherMemories || moved > 0) return "memories_changed";
  if (gone > 0) return leftBecause(facts);
  return isContinued ? "unknown" : "new_text";
}

/** Why the prefix is no longer cached. */
function leftBecause({ ttlMs, ageMs }: MissFacts): MissCause {
  return ttlMs !== null && (ageMs === null || ageMs >= ttlMs) ? "expired" : "evicted";
}

export interface PlannedTokens {
  readonly totalTokens: number;
  readonly expectedCachedTokens: number;
  readonly miss: Miss | null;
}

export function reportedMiss(plan: PlannedTokens, report: CacheReport): Miss | null {
  const { totalTokens, expectedCachedTokens: expected, miss } = plan;
  const cached = cachedOf(report, totalTokens);
  const planned = miss?.tokens ?? 0;
  if (reachOf({ plan }, report) < expected) {
    const tokens = planned + Math.max(0, expected - cached);
    return { cause: miss !== null && planned > expected - cached ? miss.cause : "unknown", tokens };
  }
  if (miss === null || cached <= expected) return miss;
  // The engine had a part of what counted as missed.
  const all = { plan: { totalTokens, expectedCachedTokens: expected + planned } };
  return reachOf(all, report) >= expected + planned ? null : { ...miss, tokens: planned - (cached - expected) };
}
