import { groupBy } from "../../core/text/collections.js";
import type { FailedQuestion, QuestionRecord, RunRecord } from "../base/run-record.js";
import { summariseArms } from "../measures/arm-summary.js";
import { baselineOf, COMPARED_MEASURES, pairedDifference, pairsOf } from "../measures/paired-difference.js";
import { qualityChange } from "../measures/quality-change.js";

export type ReportContent = ReturnType<typeof reportContent>;

/** Computes everything that a report shows. */
export function reportContent(run: RunRecord, records: readonly QuestionRecord[]) {
  return {
    run,
    records,
    summaries: summariseArms(run, records),
    comparisons: compareArms(run, records),
    /** Null: answers were not scored. */
    quality: qualityChange(run, records),
    failures: records.filter((record) => record.outcome === "failed"),
  };
}

/** Compares each arm with its baseline, by each of {@link COMPARED_MEASURES}. */
function compareArms({ arms }: RunRecord, records: readonly QuestionRecord[]) {
  const byArm = groupBy(records, ({ arm }) => arm);
  return arms.flatMap((arm) => {
    const baseline = baselineOf(arm, arms);
    if (baseline === null) return [];
    const differences = COMPARED_MEASURES.map(({ measure }) =>
      pairedDifference(pairsOf(byArm.get(baseline.id) ?? [], byArm.get(arm.id) ?? [], measure)),
    );
    return [{ arm, baseline, differences }];
  });
}

/** Most failure messages listed, each with all its questions; results.jsonl has all. */
const LISTED_MESSAGES = 50;

/**
 * Failures, warm-ups included, grouped by stage and message, most frequent first. `places`: positions of the questions in the data file, per
 * arm and conversation. `more`: number of messages not listed.
 */
export function failureGroups(failures: readonly FailedQuestion[]) {
  const groups = [...groupBy(failures, ({ stage, message }) => `${stage} ${message}`).values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const places = groupBy(group, ({ arm, conversation }) => JSON.stringify([arm, conversation])).values();
    return {
      stage: first.stage,
      message: first.message,
      count: group.length,
      places: [...places].flatMap((asked) => {
        const [{ arm, conversation } = first] = asked;
        return [{ arm, conversation, questions: asked.map(({ question }) => question) }];
      }),
    };
  });
  const sorted = groups.sort((a, b) => b.count - a.count);
  return { groups: sorted.slice(0, LISTED_MESSAGES), more: Math.max(0, groups.length - LISTED_MESSAGES) };
}

/** `question 7`, `questions 7, 12`. */
export function questionsText(questions: readonly number[]): string {
  return `question${questions.length === 1 ? "" : "s"} ${questions.join(", ")}`;
}
