import type { AnsweredQuestion } from "../base/run-record.js";
import type { Interval } from "./bootstrap.js";

/** A figure, and the number of questions it was measured on. */
export interface Measured {
  readonly value: number;
  readonly n: number;
}

/** A question's figure; null: not measured. */
export type Measure<Q> = (question: Q) => number | null;

function valuesOf<Q>(questions: readonly Q[], measure: Measure<Q>): number[] {
  return questions.map(measure).filter((value) => value !== null);
}

/** The mean over the questions measured; null where there are none. The quantile and the ratio likewise. */
export function meanOf<Q>(questions: readonly Q[], measure: Measure<Q>): Measured | null {
  const values = valuesOf(questions, measure);
  return values.length === 0 ? null : { value: sum(values) / values.length, n: values.length };
}

export function quantileOf<Q>(questions: readonly Q[], share: number, measure: Measure<Q>): Measured | null {
  const values = valuesOf(questions, measure);
  const value = quantile(values, share);
  return value === null ? null : { value, n: values.length };
}

/** One sum over another, over questions where both are measured and the second is over 0. */
export function ratioOf<Q>(questions: readonly Q[], part: Measure<Q>, whole: Measure<Q>): Measured | null {
  const pairs = questions.flatMap((question) => {
    const [above, below] = [part(question), whole(question)];
    return above === null || below === null || below <= 0 ? [] : [{ above, below }];
  });
  if (pairs.length === 0) return null;
  return { value: sum(pairs.map(({ above }) => above)) / sum(pairs.map(({ below }) => below)), n: pairs.length };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The quantile of some figures, `share` from 0 to 1, interpolated linearly as NumPy and R do. Null of none. */
export function quantile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)];
  const above = sorted[Math.ceil(at)];
  if (below === undefined || above === undefined) return null;
  return below + (above - below) * (at - Math.floor(at));
}

/** Uncached tokens of a question's prompts, those of adaptive depth included. */
export function uncachedTokens(question: AnsweredQuestion): number | null {
  let uncached = 0;
  for (const { promptTokens, cachedTokens } of [...(question.depth?.probes ?? []), question]) {
    if (promptTokens === null || cachedTokens === null) return null;
    uncached += promptTokens - cachedTokens;
  }
  return uncached;
}

/** 1: right, 0: wrong; null without a readable verdict. */
export function judgedRight({ judge }: Pick<AnsweredQuestion, "judge">): number | null {
  return judge?.isCorrect == null ? null : Number(judge.isCorrect);
}

/** ln of the right answer's probability, per token. */
export function logLikelihood({ likelihood }: AnsweredQuestion): number | null {
  return likelihood === null ? null : -likelihood.nats / likelihood.tokens;
}

/** Written in place of a figure that was not measured; never a zero. */
export const NOT_MEASURED = "not measured";

export type Format = (value: number) => string;

/** By digits after the point. Cached: making one takes longer than a thousand figures. */
const FORMATS = [0, 1, 2, 3].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

const grouped = (value: number, digits: 0 | 1 | 2 | 3) => FORMATS[digits]?.format(value) ?? String(value);

const withMinus = (text: string) => text.replace("-", "−");

/** `1,234`; `12.3` below a hundred. */
export const tokens: Format = (value) => withMinus(grouped(value, Math.abs(value) < 100 ? 1 : 0));

/** `1,234`, `12.3`, `0.12`: at least three digits. */
export const milliseconds: Format = (value) => {
  const size = Math.abs(value);
  return withMinus(grouped(value, size < 1 ? 2 : size < 100 ? 1 : 0));
};

/** `75.3 %` of 0.753. */
export const percent: Format = (value) => withMinus(`${grouped(100 * value, 1)} %`);

export const score: Format = (value) => withMinus(grouped(value, 3));

/** `1.2` of 0.012: points of a score from 0 to 1, or per cent. */
export const points: Format = (value) => withMinus(grouped(100 * value, 1));

export function signed(format: Format): Format {
  return (value) => (value > 0 ? `+${format(value)}` : format(value));
}

/** `−12 (−14 to −10)`. */
export function withInterval({ value, low, high }: Interval, format: Format): string {
  return `${format(value)} (${format(low)} to ${format(high)})`;
}
