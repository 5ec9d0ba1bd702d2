import type { AnsweredQuestion, FailedQuestion, QuestionRecord } from "../base/run-record.js";

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

/**
 * The value below which a share of some figures lies, from 0 to 1; between two figures, on the line between them (what NumPy and R do by
 * default). Null of none.
 */
export function quantile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)];
  const above = sorted[Math.ceil(at)];
  if (below === undefined || above === undefined) return null;
  return below + (above - below) * (at - Math.floor(at));
}

/** Prompt tokens that the cache did not hold; null where either count was not measured. */
export function uncachedTokens({ promptTokens, cachedTokens }: AnsweredQuestion): number | null {
  return promptTokens === null || cachedTokens === null ? null : promptTokens - cachedTokens;
}

/** 1 where the judge says that the answer is right, 0 where it says that it is not; null without a readable verdict. */
export function judgedRight({ judge }: AnsweredQuestion): number | null {
  return judge?.isCorrect == null ? null : Number(judge.isCorrect);
}

/** ln of the right answer's probability, per token of it; null where it was not asked for. */
export function logLikelihood({ likelihood }: AnsweredQuestion): number | null {
  return likelihood === null ? null : -likelihood.nats / likelihood.tokens;
}

export function isAnswered(record: QuestionRecord): record is AnsweredQuestion {
  return record.outcome === "answered";
}

export function isFailed(record: QuestionRecord): record is FailedQuestion {
  return record.outcome === "failed";
}

/** Names a question across arms. */
export function questionKey({ conversation, question }: Pick<QuestionRecord, "conversation" | "question">): string {
  return JSON.stringify([conversation, question]);
}
