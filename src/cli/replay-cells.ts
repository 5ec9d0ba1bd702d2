import type { ReplayTotals } from "../eval/replay/replay-trace.js";

/** A part of a whole, `-` where there is no whole. */
export function ratioCell(part: number, whole: number, digits = 3): string {
  return whole === 0 ? "-" : (part / whole).toFixed(digits);
}

/** The mean of so many, in whole numbers. */
export function meanCell(sum: number, of: number): string {
  return Math.round(sum / of).toLocaleString("en");
}

/** What of a replay's totals every table has: memory sent, evidence, and per request the prompt, what of it was cached, and what was not. */
export function totalsCells(
  totals: Pick<
    ReplayTotals,
    | "requests"
    | "memoryTokens"
    | "retrievedTokens"
    | "evidenceInPrompt"
    | "evidence"
    | "promptTokens"
    | "cachedTokens"
    | "uncachedTokens"
  >,
): string[] {
  const tokens = [totals.promptTokens, totals.cachedTokens, totals.uncachedTokens];
  return [
    ratioCell(totals.memoryTokens, totals.retrievedTokens),
    ratioCell(totals.evidenceInPrompt, totals.evidence),
    ...tokens.map((sum) => meanCell(sum, totals.requests)),
  ];
}
