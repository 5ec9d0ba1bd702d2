import type { ReplayTotals } from "../eval/replay/replay-trace.js";

/** A part of a whole; `-` for an empty whole. */
export function ratioCell(part: number, whole: number, digits = 3): string {
  return whole === 0 ? "-" : (part / whole).toFixed(digits);
}

export function meanCell(sum: number, of: number): string {
  return Math.round(sum / of).toLocaleString("en");
}

/** The columns of every table: memory sent, evidence, and per request prompt, cached and uncached tokens. */
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
