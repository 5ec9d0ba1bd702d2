import { groupBy } from "../../core/text/lists.js";
import type { FailedQuestion } from "../base/run-record.js";

/** Failures with the same stage and message, by where they happened. */
export interface FailureGroup {
  readonly stage: FailedQuestion["stage"];
  readonly message: string;
  readonly count: number;
  /** Per arm and conversation, the questions' places in the data file. */
  readonly places: readonly {
    readonly arm: string;
    readonly conversation: string;
    readonly questions: readonly number[];
  }[];
}

/** All failures, warm-ups included, those that happened most often first. */
export function failureGroups(failures: readonly FailedQuestion[]): FailureGroup[] {
  const alike = groupBy(failures, ({ stage, message }) => `${stage} ${message}`);
  return [...alike.values()]
    .flatMap((group): FailureGroup[] => {
      const [first] = group;
      if (first === undefined) return [];
      const places = groupBy(group, ({ arm, conversation }) => JSON.stringify([arm, conversation]));
      return [
        {
          stage: first.stage,
          message: first.message,
          count: group.length,
          places: [...places.values()].flatMap((asked) => {
            const [{ arm, conversation } = first] = asked;
            return [{ arm, conversation, questions: asked.map(({ question }) => question) }];
          }),
        },
      ];
    })
    .sort((a, b) => b.count - a.count);
}

/** `question 7`, `questions 7, 12`. */
export function questionsText(questions: readonly number[]): string {
  return `question${questions.length === 1 ? "" : "s"} ${questions.join(", ")}`;
}
