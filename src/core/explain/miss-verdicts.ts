import { ownTurn, type StoredPrompt } from "../compose/stored-prompt.js";
import { IN_FLIGHT_MS, reachOf } from "../context-index/cache-report.js";
import type { ResidencyConfig } from "../context-index/residency.js";
import type { EngineModel } from "../cost/engine-model.js";
import type { EngineVerdict, IndexVerdict, WhyLeft, WhyLess } from "./explanation.js";
import type { Outline } from "./prompt-outline.js";

/**
 * The shared tokens that the context index can track. It identifies prompts by the digest before each turn's blocks, then by blocks, then
 * as a whole. It does not track other shared text, such as one of two instruction messages or the start of a question.
 *
 * @param shared number of leading segments that are the same
 * @param sizes tokens of this prompt's segments
 */
export function trackedTokens(here: Outline, there: Outline, shared: number, sizes: readonly number[]): number {
  let tracked = 0;
  for (const [end, isServed] of there.ends) {
    const isEarlierTurn = here.ends.get(end) === true && end < here.segments.length;
    if (isServed && end <= shared && isEarlierTurn) tracked = end;
  }
  for (const [anchor, isServed] of there.anchors) {
    if (!isServed || anchor > shared || !here.anchors.has(anchor)) continue;
    let end = anchor;
    if (
      here.segments[anchor]?.kind === "opening" &&
      here.segments[anchor + 1]?.kind === "block" &&
      anchor + 2 <= shared
    ) {
      end = anchor + 1;
      while (end < shared && here.segments[end]?.kind === "block") end++;
    }
    tracked = Math.max(tracked, end);
  }
  return sizes.slice(0, tracked).reduce((sum, size) => sum + size, 0);
}

/** What is known of the index at the time a request was planned. */
interface IndexEvidence {
  readonly prompt: StoredPrompt;
  readonly nearest: StoredPrompt;
  /** Whether the nearest prompt has lost a memory since it was sent. */
  readonly hasErased: boolean;
  readonly earlier: readonly StoredPrompt[];
  readonly limits: ResidencyConfig;
  /** Tokens of the shared prefix … */
  readonly shared: number;
  /** … those that the index once held … */
  readonly tracked: number;
  /** … and those that it held when the request was planned. */
  readonly expected: number;
}

/** Whether the shared prefix was still expected, and if not, why, as far as known. */
export function indexVerdict(evidence: IndexEvidence): IndexVerdict {
  const { shared, tracked, expected } = evidence;
  if (shared === 0) return { kind: "nothing_shared" };
  if (expected >= tracked) return { kind: "expected" };
  return { kind: "left", tokens: tracked - expected, because: whyLeft(evidence) };
}

function whyLeft({ prompt, nearest, hasErased, earlier, limits }: IndexEvidence): WhyLeft {
  if (nearest.evicted) return { kind: "evicted" };
  if (hasErased) return { kind: "forgotten" };
  const age = prompt.at - nearest.at;
  if ((limits.kind === "ttl" || limits.kind === "ttl-and-capacity") && age >= limits.ttlMs) {
    return { kind: "ttl", ttlMs: limits.ttlMs };
  }
  const after = ownTurn(nearest).id;
  const short = earlier.find((request) => ownTurn(request).id > after && isShort(request));
  if (short !== undefined && short.requestId !== null) return { kind: "reported", requestId: short.requestId };
  if (limits.kind === "capacity" || limits.kind === "ttl-and-capacity") {
    return { kind: "capacity", tokens: limits.tokens };
  }
  return limits.kind === "slots" ? limits : { kind: "unknown" };
}

/** Whether the engine reported less than expected, by more than its steps can hide. */
function isShort({ plan, report }: StoredPrompt): boolean {
  return plan !== null && report !== null && reachOf({ plan }, report) < plan.expectedCachedTokens;
}

/** The cached tokens of the engine's report, in memstem's count of the prompt; null if not reported. */
export function reportedHere({ report }: StoredPrompt, total: number): number | null {
  if (report === null) return null;
  const { cachedTokens, promptTokens } = report;
  const scale = promptTokens !== null && promptTokens > 0 ? total / promptTokens : 1;
  return Math.min(total, Math.round(cachedTokens * scale));
}

/** What is known of how the engine served a request. */
interface EngineEvidence {
  readonly prompt: StoredPrompt;
  readonly nearest: StoredPrompt | null;
  readonly expected: number;
  readonly total: number;
  readonly engine: EngineModel;
}

/** Whether the engine had what was expected, and if not, the likeliest reason. */
export function engineVerdict(evidence: EngineEvidence): EngineVerdict {
  const { prompt, expected, total, engine } = evidence;
  const reported = reportedHere(prompt, total);
  if (reported === null) return { kind: "not_reported" };
  if (reported >= expected)
    return reported > expected ? { kind: "more", tokens: reported - expected } : { kind: "as_expected" };
  const tokens = expected - reported;
  const less = (because: WhyLess): EngineVerdict => ({
    kind: "less",
    tokens,
    because,
  });
  const { minimumPrefixTokens: minimumTokens, blockTokens } = engine;
  if (reported === 0 && expected < minimumTokens) return less({ kind: "below_minimum", minimumTokens });
  if (tokens < blockTokens) return less({ kind: "block_rounding", blockTokens });
  if (!isShort(prompt)) return { kind: "as_expected" };
  if (evidence.nearest?.evicted === true) return less({ kind: "evicted" });
  if (evidence.nearest !== null && prompt.at - evidence.nearest.at < IN_FLIGHT_MS) return less({ kind: "in_flight" });
  const billsWrites = engine.cost.kind === "money" && engine.cost.written !== engine.cost.uncached;
  if (reported === 0 && billsWrites) return less({ kind: "no_breakpoint" });
  return less({ kind: "unknown" });
}
