import type { AnsweredQuestion, QuestionRecord } from "../base/run-record.js";
import { type Format, milliseconds, score, tokens } from "./figures.js";
import { judgedRight, logLikelihood, type Measure, uncachedTokens } from "./measured.js";
import { type PairedDifference, pairedDifference, pairsOf } from "./paired-difference.js";

/** What arms and runs are compared in, question by question. */
export interface ComparedMeasure {
  readonly name: string;
  readonly measure: Measure<AnsweredQuestion>;
  readonly format: Format;
  /** Whether a ratio means something too: of amounts, not of scores. */
  readonly hasRatio: boolean;
}

export const COMPARED_MEASURES: readonly ComparedMeasure[] = [
  { name: "Uncached tokens", measure: uncachedTokens, format: tokens, hasRatio: true },
  { name: "TTFT ms", measure: ({ ttftMs }) => ttftMs, format: milliseconds, hasRatio: true },
  { name: "Total ms", measure: ({ totalMs }) => totalMs, format: milliseconds, hasRatio: true },
  { name: "F1", measure: ({ f1 }) => f1, format: score, hasRatio: false },
  { name: "BLEU-1", measure: ({ bleu1 }) => bleu1, format: score, hasRatio: false },
  { name: "Log-likelihood", measure: logLikelihood, format: score, hasRatio: false },
  { name: "Judge", measure: judgedRight, format: score, hasRatio: false },
];

/** One measure of two sets of records, compared; null where nothing was measured in both. */
export interface MeasuredDifference {
  readonly measure: ComparedMeasure;
  readonly found: PairedDifference | null;
}

/** Compares two sets of records of the same questions in all {@link COMPARED_MEASURES}. */
export function compareRecords(
  baseline: readonly QuestionRecord[],
  other: readonly QuestionRecord[],
  seed: number,
): MeasuredDifference[] {
  return COMPARED_MEASURES.map((measure) => {
    const pairs = pairsOf(baseline, other, measure.measure);
    return { measure, found: pairedDifference(pairs, { seed, hasRatio: measure.hasRatio }) };
  });
}
