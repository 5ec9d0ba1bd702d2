import { type CacheReport, cachedOf, reachOf } from "../cache/cache-report.js";
import type { ResidencyConfig } from "../cache/residency.js";

/*
 * A miss: tokens that an engine computes of a prompt beyond the new turn's own text, with one cause. Decided once, when a prompt is planned;
 * the engine's report may correct it. The plan, `/metrics`, the dashboard, MCP and OpenTelemetry all show this one.
 */

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
  "restarted",
  "unknown",
] as const;
export type MissCause = (typeof MISS_CAUSES)[number];

/** Tokens that are computed beyond the new turn's own text, and why. */
export interface Miss {
  readonly cause: MissCause;
  /** Estimated, of the prompt. */
  readonly tokens: number;
}

/** What decides a miss when a prompt is planned. */
export interface MissFacts {
  /** Tokens of the prompt before the new turn's own text: what could be cached, … */
  readonly before: number;
  /** … of these, what earlier prompts of this user began with, cached or not, … */
  readonly known: number;
  /** … and what should be cached. */
  readonly cached: number;
  /** Tokens of this turn's memories that earlier prompts had in another place, and that are computed again. */
  readonly moved: number;
  /** Whether the user has no earlier prompt. */
  readonly isFirst: boolean;
  /** Whether the prompt continues the conversation's newest one, as the client sent it. */
  readonly isContinued: boolean;
  readonly hasOtherInstructions: boolean;
  /** Whether earlier messages differ from those of the prompt before, or a window's epoch began. */
  readonly hasOtherHistory: boolean;
  /** Whether memories of earlier turns were dropped. */
  readonly hasOtherMemories: boolean;
  /** Milliseconds since the prompt before; null: not known. */
  readonly ageMs: number | null;
  /** What bounds the engine's cache. */
  readonly limits: ResidencyConfig;
}

/** Share of `before` below which a miss of a prompt that only continues is the estimate's own error. */
const ESTIMATE_ERROR = 0.02;

/** The miss of a planned prompt; null: only the new turn's own text is computed. */
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
  if (facts.hasOtherInstructions) return "instructions_changed";
  const gone = Math.max(0, Math.min(known, before) - cached);
  const changed = Math.max(0, before - Math.max(known, cached)) + moved;
  if (gone > changed) return leftBecause(facts);
  if (facts.hasOtherHistory) return "history_changed";
  if (facts.hasOtherMemories || moved > 0) return "memories_changed";
  if (gone > 0) return leftBecause(facts);
  return isContinued ? "unknown" : "new_text";
}

/** Why what was cached no longer is. */
function leftBecause({ limits, ageMs }: MissFacts): MissCause {
  if (!("ttlMs" in limits)) return "evicted";
  if (ageMs === null) return limits.kind === "ttl" ? "expired" : "unknown";
  return ageMs >= limits.ttlMs ? "expired" : "evicted";
}

/** A planned prompt, as far as a report corrects its miss. */
export interface PlannedTokens {
  readonly totalTokens: number;
  readonly expectedCachedTokens: number;
  readonly miss: Miss | null;
}

/** The miss of a prompt by what its engine reported. @param because why the engine had less than planned, where that is known */
export function reportedMiss(plan: PlannedTokens, report: CacheReport, because: MissCause = "unknown"): Miss | null {
  const { totalTokens, expectedCachedTokens: expected, miss } = plan;
  const cached = cachedOf(report, totalTokens);
  const planned = miss?.tokens ?? 0;
  if (reachOf({ plan }, report) < expected) {
    const tokens = planned + Math.max(0, expected - cached);
    return { cause: miss !== null && planned > expected - cached ? miss.cause : because, tokens };
  }
  if (miss === null || cached <= expected) return miss;
  // Of what counted as missed, the engine had some.
  const all = { plan: { totalTokens, expectedCachedTokens: expected + planned } };
  return reachOf(all, report) >= expected + planned ? null : { ...miss, tokens: planned - (cached - expected) };
}
