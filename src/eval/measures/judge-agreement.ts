import type { AnsweredQuestion, QuestionRecord, RunRecord } from "../base/run-record.js";
import { type BootstrapOptions, bootstrapGroups, type Interval } from "./bootstrap.js";
import { clustersOf, type ResampledUnit } from "./clusters.js";
import { isAnswered, type Measure, questionKey } from "./measured.js";

/** A judge of a run: its name, and whether it calls an answer right; null without a readable verdict. */
export interface RunJudge {
  readonly name: string;
  readonly measure: Measure<AnsweredQuestion>;
}

/** The judges of a run, the one of its figures first. */
export function judgesOfRun({ judge, otherJudges }: Pick<RunRecord, "judge" | "otherJudges">): RunJudge[] {
  if (judge === null) return [];
  return [
    { name: judge.model, measure: ({ judge: said }) => asNumber(said?.isCorrect) },
    ...otherJudges.map(({ name }) => ({
      name,
      measure: ({ otherJudgements }: AnsweredQuestion) =>
        asNumber(otherJudgements.find(({ judge: by }) => by === name)?.isCorrect),
    })),
  ];
}

function asNumber(isCorrect: boolean | null | undefined): number | null {
  return isCorrect == null ? null : Number(isCorrect);
}

/** How far two judges agree on the same answers. */
export interface JudgeAgreement {
  readonly first: string;
  readonly second: string;
  /** Answers of which both gave a readable verdict, of all arms. */
  readonly answers: number;
  /** Share of those on which both say the same. */
  readonly agreement: Interval;
  /** Cohen's kappa: agreement beyond what their shares of right answers make by chance; null where both always say the same thing. */
  readonly kappa: Interval | null;
  /** Answers that only one of them calls right. */
  readonly onlyFirst: number;
  readonly onlySecond: number;
}

/** Counts of two verdicts: both right, only the first, only the second, none. */
type Verdicts = readonly [number, number, number, number];

/**
 * Agreement of every two judges of a run. Intervals resample conversations where there are enough, else questions, with all arms' answers to
 * them: answers to one question are not independent.
 */
export function judgeAgreements(
  run: Pick<RunRecord, "judge" | "otherJudges">,
  records: readonly QuestionRecord[],
  options: BootstrapOptions,
): JudgeAgreement[] {
  const judges = judgesOfRun(run);
  const answered = records.filter(isAnswered).filter(({ isWarmUp }) => !isWarmUp);
  return judges.flatMap((first, at) =>
    judges.slice(at + 1).flatMap((second): JudgeAgreement[] => {
      const both = answered.filter((record) => first.measure(record) !== null && second.measure(record) !== null);
      const isClustered = clustersOf(both.map(({ conversation }) => conversation)) !== null;
      const unit = isClustered ? "conversations" : "questions";
      const groups = [...verdictsBy(unit, both, first, second).values()];
      const all = groups.reduce(added, NO_VERDICTS);
      const answers = all[0] + all[1] + all[2] + all[3];
      const agreement = bootstrapGroups(
        groups,
        (drawn) => agreementOf(drawn.reduce(added, NO_VERDICTS)),
        options,
        unit,
      );
      if (agreement === null) return [];
      const kappa = bootstrapGroups(groups, (drawn) => kappaOf(drawn.reduce(added, NO_VERDICTS)), options, unit);
      const [, onlyFirst, onlySecond] = all;
      return [{ first: first.name, second: second.name, answers, agreement, kappa, onlyFirst, onlySecond }];
    }),
  );
}

const NO_VERDICTS: Verdicts = [0, 0, 0, 0];

function added(a: Verdicts, b: Verdicts): Verdicts {
  return [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]];
}

function verdictsBy(
  unit: ResampledUnit,
  answered: readonly AnsweredQuestion[],
  first: RunJudge,
  second: RunJudge,
): ReadonlyMap<string, Verdicts> {
  const counts = new Map<string, Verdicts>();
  for (const record of answered) {
    const [one, other] = [first.measure(record), second.measure(record)];
    if (one === null || other === null) continue;
    const key = unit === "conversations" ? record.conversation : questionKey(record);
    const said: Verdicts = [one * other, one * (1 - other), (1 - one) * other, (1 - one) * (1 - other)];
    counts.set(key, added(counts.get(key) ?? NO_VERDICTS, said));
  }
  return counts;
}

function agreementOf([both, onlyFirst, onlySecond, none]: Verdicts): number | null {
  const all = both + onlyFirst + onlySecond + none;
  return all === 0 ? null : (both + none) / all;
}

/** Null where chance alone makes them agree on everything. */
export function kappaOf(counts: Verdicts): number | null {
  const [both, onlyFirst, onlySecond, none] = counts;
  const all = both + onlyFirst + onlySecond + none;
  const agreement = agreementOf(counts);
  if (agreement === null) return null;
  const [first, second] = [(both + onlyFirst) / all, (both + onlySecond) / all];
  const chance = first * second + (1 - first) * (1 - second);
  return chance === 1 ? null : (agreement - chance) / (1 - chance);
}
