import { largest, smallest } from "../../core/text/collections.js";
import { armLabel, armTitle, isSameGroup } from "../measures/arm-summary.js";
import { points, signed, withInterval } from "../measures/measured.js";
import type { PairedDifference } from "../measures/paired-difference.js";
import { type ArmChange, mostChanged, type Verdict, verdictOf } from "../measures/quality-change.js";
import type { ReportContent } from "./report-content.js";
import { armGroups, type ReportTable } from "./report-tables.js";

const NAMED_ARMS = 3;

const SAYS: Readonly<Record<Verdict, string>> = {
  higher: "higher",
  lower: "lower",
  "not shown": "no difference shown",
  same: "no score differed",
};

/** A report's first lines: whether answers changed, by how much, and how certain that is. No difference without its interval. */
export function qualityLines({ quality, run }: Pick<ReportContent, "quality" | "run">): string[] {
  if (quality === null) {
    const why = run.arms.length < 2 ? "there is one arm" : "none was scored in two arms";
    return [`No answers were compared, since ${why}: this run says nothing about their quality.`];
  }
  const compared = quality.arms.flatMap(({ found, ...change }) => (found === null ? [] : [{ ...change, found }]));
  const score = quality.score === "judge" ? "the judge" : `${quality.score} (no judge was asked)`;
  return [`Answers, by ${score}: ${outcome(compared)}`, ...precision(compared.map(({ found }) => found))];
}

type Compared = ArmChange & { readonly found: PairedDifference };

function outcome(compared: readonly Compared[]): string {
  const by = (...verdicts: Verdict[]) => compared.filter(({ found }) => verdicts.includes(verdictOf(found)));
  const [higher, lower, others] = [by("higher"), by("lower"), by("not shown", "same")];
  const all = `${compared.length} ${compared.length === 1 ? "way" : "ways"} to build prompts`;
  const verdict =
    higher.length + lower.length === 0
      ? `no difference from the baseline was shown for ${all}.`
      : `of ${all}, ${higher.length} scored higher than the baseline and ${lower.length} lower; for ${others.length} no difference was shown.`;
  const ordered = [...higher, ...lower, ...others];
  const named = ordered
    .slice(0, NAMED_ARMS)
    .map(
      ({ arm, baseline, found }) =>
        `${armTitle(arm)}: ${pointsOf(found)} points against ${isSameGroup(arm, baseline) ? armLabel(baseline) : armTitle(baseline)}`,
    );
  const more = ordered.length > NAMED_ARMS ? `; ${ordered.length - NAMED_ARMS} more in the table` : "";
  return `${verdict} ${named.join("; ")}${more}.`;
}

function precision(found: readonly PairedDifference[]): string[] {
  const widest = largest(
    found.map(({ difference }) => (difference.high - difference.low) / 2),
    0,
  );
  const same = found.filter((one) => verdictOf(one) === "same");
  return [
    `Precision: ${range(found.map(({ n }) => n))} questions in both arms, ${drawn(found)}; intervals of 95 % reach at most ±${points(widest)} points.`,
    ...(same.length === 0
      ? []
      : [
          `Where no score differed, up to ${points(mostChanged(smallest(same.map(({ n }) => n))))} % of questions may still score differently (95 %, rule of three).`,
        ]),
  ];
}

/** What the intervals resample, and what they leave out. */
function drawn(found: readonly PairedDifference[]): string {
  const conversations = range(found.map(({ resampled }) => resampled.conversations));
  const of = `of ${conversations} ${conversations === "1" ? "conversation" : "conversations"}`;
  return found.some(({ resampled }) => resampled.unit === "questions")
    ? `${of}: too few to resample, so intervals resample questions and say nothing of other conversations`
    : `${of}, which the intervals resample`;
}

function range(counts: readonly number[]): string {
  const [least, most] = [smallest(counts).toLocaleString("en"), largest(counts).toLocaleString("en")];
  return least === most ? least : `${least} to ${most}`;
}

function pointsOf({ difference }: PairedDifference): string {
  return withInterval(difference, signed(points));
}

/** Answers of every arm against its baseline's; null where they were not scored. */
export function answerTable({ quality }: Pick<ReportContent, "quality">): ReportTable | null {
  if (quality === null) return null;
  const groups = armGroups(quality.arms, ({ arm, baseline, found }) => ({
    title: `${armLabel(arm)} vs. ${armLabel(baseline)}`,
    cells:
      found === null
        ? [null, null, null]
        : [{ text: String(found.n) }, { text: pointsOf(found) }, { text: SAYS[verdictOf(found)] }],
  }));
  const columns = ["In both", "Points (95 % interval)", "Says"];
  return { caption: "Answers", columns, groups };
}
