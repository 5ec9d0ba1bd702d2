import { largest, smallest } from "../../core/text/collections.js";
import { categoryTitle } from "../base/run-record.js";
import { armLabel, armTitle, isSameGroup } from "../measures/arm-summary.js";
import { points, score, signed, withInterval } from "../measures/measured.js";
import type { PairedDifference } from "../measures/paired-difference.js";
import {
  type ArmChange,
  mostChanged,
  type QualityChange,
  questionsToSee,
  TO_SEE,
  type Verdict,
  verdictOf,
} from "../measures/quality-change.js";
import type { ReportContent } from "./report-content.js";
import { armGroups, type Cell, type ReportTable } from "./report-tables.js";

/** Arms that the first lines name. */
const NAMED_ARMS = 3;

const SAYS: Readonly<Record<Verdict, string>> = {
  higher: "higher",
  lower: "lower",
  "not shown": "no difference shown",
  same: "no score differed",
};

/** The first lines of a report: whether answers changed, by how much, and how sure that is. No difference without its interval. */
export function qualityLines({ quality, run }: Pick<ReportContent, "quality" | "run">): string[] {
  if (quality === null) {
    const why = run.arms.length < 2 ? "there is one arm" : "no answer was scored in two arms";
    return [`Answers: not measured (${why}). This run says nothing of quality.`];
  }
  const compared = quality.arms.flatMap(({ found, ...change }) => (found === null ? [] : [{ ...change, found }]));
  return [
    `Answers, by ${scoreName(quality)}: ${outcome(compared)}`,
    ...precision(compared.map(({ found }) => found)),
    ...sensitivity(quality),
    ...(compared.length < 2
      ? []
      : [
          `${compared.length} comparisons are made: after Holm's correction ${quality.arms.filter(isShown).length} of them differ at the level of 5 %.`,
        ]),
  ];
}

function scoreName({ score }: QualityChange): string {
  return score === "judge" ? "the judge" : `${score} (no judge was asked)`;
}

/** Whether the run's other scores say the same; silent where there is none. */
function sensitivity({ arms, others }: QualityChange): string[] {
  if (others.length === 0) return [];
  const says = (changes: readonly ArmChange[], arm: string) => {
    const found = changes.find((change) => change.arm.id === arm)?.found;
    const verdict = found == null ? null : verdictOf(found);
    return verdict === "same" ? "not shown" : verdict;
  };
  const differing = arms.filter(({ arm }) =>
    others.some(({ arms: changes }) => says(changes, arm.id) !== says(arms, arm.id)),
  );
  const scores = others.map(({ score }) => score).join(", ");
  const named = differing.slice(0, NAMED_ARMS).map(({ arm }) => armTitle(arm));
  return [
    differing.length === 0
      ? `Sensitivity: by ${scores} the same is said of every way.`
      : `Sensitivity: by ${scores} something else is said of ${differing.length} of ${arms.length}: ${named.join("; ")}${
          differing.length > NAMED_ARMS ? "; …" : ""
        }. Trust no difference that one score alone shows.`,
  ];
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
  const asked = found.map(({ n }) => n);
  const needed = found.flatMap(({ effectiveVariance }) => questionsToSee(effectiveVariance) ?? []);
  const test = `(two-sided level ${100 * TO_SEE.level} %, power ${100 * TO_SEE.power} %)`;
  const same = found.filter((one) => verdictOf(one) === "same");
  return [
    `Precision: ${range(asked)} questions in both arms, ${drawn(found)}; intervals of 95 % reach at most ±${points(widest)} points. ${
      needed.length === 0
        ? "What a difference of one point would take cannot be said, as no score differed."
        : `To see a difference of ${TO_SEE.points} point ${test}, ${range(needed)} questions like these would be needed.`
    }`,
    ...(same.length === 0
      ? []
      : [
          `Where no score differed, up to ${points(mostChanged(smallest(same.map(({ n }) => n))))} % of questions may still score differently (95 %, rule of three).`,
        ]),
  ];
}

/** What the intervals resample, and what that leaves out. */
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

const COLUMNS = ["In both", "Points (95 % interval)", "Says", "Questions to see 1 point"];

function isShown({ adjustedP }: Pick<ArmChange, "adjustedP">): boolean {
  return adjustedP !== null && adjustedP < TO_SEE.level;
}

function pCell({ adjustedP }: Pick<ArmChange, "adjustedP">): Cell {
  return adjustedP === null ? null : { text: adjustedP < 0.001 ? "< 0.001" : score(adjustedP) };
}

function changeCells(found: PairedDifference | null): Cell[] {
  if (found === null) return COLUMNS.map(() => null);
  const needed = questionsToSee(found.effectiveVariance);
  return [
    { text: String(found.n) },
    { text: pointsOf(found) },
    { text: SAYS[verdictOf(found)] },
    { text: needed === null ? "cannot be said" : needed.toLocaleString("en") },
  ];
}

/** Answers of every arm against its baseline's; null where they were not measured. */
function qualityTable({ quality }: Pick<ReportContent, "quality">): ReportTable | null {
  if (quality === null) return null;
  const groups = armGroups(quality.arms, (change) => ({
    title: `${armLabel(change.arm)} vs. ${armLabel(change.baseline)}`,
    cells: [...changeCells(change.found), pCell(change)],
  }));
  return { caption: "Did answers change?", rowsAre: "Prompts built by", columns: [...COLUMNS, "p (Holm)"], groups };
}

/** What each option does, all else alike; null where no two arms differ in one option only. */
function optionsTable({ quality }: Pick<ReportContent, "quality">): ReportTable | null {
  if (quality === null || quality.options.length === 0) return null;
  const rows = quality.options.map(({ option, from, to, pairsOfArms, found }) => ({
    title: `${option}: ${to} vs. ${from}`,
    cells: [{ text: String(pairsOfArms) }, ...changeCells(found)],
  }));
  return {
    caption: "One option at a time, all else alike",
    rowsAre: "Option",
    columns: ["Pairs of arms", ...COLUMNS],
    groups: [{ title: "", rows }],
  };
}

/** Differences beside each other; those that differ after Holm's correction are marked. */
function besideEachOther(
  { arms }: QualityChange,
  caption: string,
  columns: readonly { readonly title: string; readonly arms: readonly ArmChange[] }[],
): ReportTable {
  const groups = armGroups(arms, ({ arm, baseline }) => ({
    title: `${armLabel(arm)} vs. ${armLabel(baseline)}`,
    cells: columns.map(({ arms: changes }): Cell => {
      const change = changes.find((one) => one.arm.id === arm.id);
      return change?.found == null ? null : { text: `${pointsOf(change.found)}${isShown(change) ? " *" : ""}` };
    }),
  }));
  const marked = `${caption} (*: p below 0.05 after Holm’s correction)`;
  return { caption: marked, rowsAre: "Prompts built by", columns: columns.map(({ title }) => title), groups };
}

/** The same differences by every score of the run, and by category; neither where there is one. */
function partTables({ quality }: Pick<ReportContent, "quality">): ReportTable[] {
  if (quality === null) return [];
  const { categories, others } = quality;
  const scores = [quality, ...others].map(({ score, arms }) => ({ title: score, arms }));
  const each = categories.map(({ category, arms }) => ({ title: categoryTitle(category), arms }));
  return [
    ...(each.length < 2 ? [] : [besideEachOther(quality, "Points by category", each)]),
    ...(scores.length < 2 ? [] : [besideEachOther(quality, "Points by every score", scores)]),
  ];
}

/** All tables on answers. */
export function answerTables(content: ReportContent): ReportTable[] {
  return [qualityTable(content), optionsTable(content), ...partTables(content)].filter((table) => table !== null);
}
