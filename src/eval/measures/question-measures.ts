import type { AnsweredQuestion, FailedQuestion, QuestionRecord } from "../base/run-record.js";

/** Prompt tokens that the cache did not hold; null where either count was not measured. */
export function uncachedTokens({ promptTokens, cachedTokens }: AnsweredQuestion): number | null {
  return promptTokens === null || cachedTokens === null ? null : promptTokens - cachedTokens;
}

/** Cached tokens ÷ prompt tokens; null where either count was not measured, and of an empty prompt. */
export function cachedShare({ promptTokens, cachedTokens }: AnsweredQuestion): number | null {
  return promptTokens === null || cachedTokens === null || promptTokens === 0 ? null : cachedTokens / promptTokens;
}

/** 1 where the judge says that the answer is right, 0 where it says that it is not; null without a readable verdict. */
export function judgedRight({ judge }: AnsweredQuestion): number | null {
  return judge?.isCorrect == null ? null : Number(judge.isCorrect);
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
