import { type Format, milliseconds, score, tokens } from "./figures.js";
import type { Measure } from "./measured.js";
import { judgedRight, uncachedTokens } from "./question-measures.js";
import type { AnsweredQuestion } from "./run-record.js";

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
  { name: "F1", measure: ({ f1 }) => f1, format: score, hasRatio: false },
  { name: "BLEU-1", measure: ({ bleu1 }) => bleu1, format: score, hasRatio: false },
  { name: "Judge", measure: judgedRight, format: score, hasRatio: false },
];
