import { quantile } from "../base/quantile.js";

/** A figure, and of how many questions it is: those that it was measured of. */
export interface Measured {
  readonly value: number;
  readonly n: number;
}

/** A question's figure; null where it was not measured. */
export type Measure<Q> = (question: Q) => number | null;

/** The figures of those questions that have one, in their order. */
export function valuesOf<Q>(questions: readonly Q[], measure: Measure<Q>): number[] {
  return questions.map(measure).filter((value) => value !== null);
}

/** The mean over those measured; null where none is. */
export function meanOf<Q>(questions: readonly Q[], measure: Measure<Q>): Measured | null {
  const values = valuesOf(questions, measure);
  return values.length === 0 ? null : { value: sum(values) / values.length, n: values.length };
}

/** The quantile over those measured; null where none is. */
export function quantileOf<Q>(questions: readonly Q[], share: number, measure: Measure<Q>): Measured | null {
  const values = valuesOf(questions, measure);
  const value = quantile(values, share);
  return value === null ? null : { value, n: values.length };
}

/** One sum over another, of questions where both are measured and the second is over 0; null where there is none. */
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
