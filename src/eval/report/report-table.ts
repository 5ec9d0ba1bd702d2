import { largest } from "../../core/text/lists.js";
import type { EvalArm } from "../base/run-record.js";
import { groupArms } from "../measures/arm-summary.js";
import type { MeasuredDifference } from "../measures/compared-measures.js";
import { signed, times, withInterval } from "../measures/figures.js";

/**
 * One cell: a figure, with what qualifies it (an interval, a count), which may stand smaller; `isCode` where it is text of others, letter by
 * letter. Null: not measured.
 */
export type Cell = { readonly text: string; readonly detail?: string; readonly isCode?: true } | null;

export interface TableRow {
  readonly title: string;
  /** As many as columns. */
  readonly cells: readonly Cell[];
}

/** Rows under one heading; an empty title is no heading. */
export interface RowGroup {
  readonly title: string;
  readonly rows: readonly TableRow[];
}

/** A table as both reports show it: first a column of row titles, then figures. */
export interface ReportTable {
  readonly caption: string;
  readonly rowsAre: string;
  readonly columns: readonly string[];
  readonly groups: readonly RowGroup[];
}

/** Rows of arms, or of what belongs to arms, in the groups that are compared with each other. */
export function armGroups<A extends { readonly arm: EvalArm }>(
  arms: readonly A[],
  rowOf: (arm: A) => TableRow | readonly TableRow[],
): RowGroup[] {
  return groupArms(arms, ({ arm }) => arm).map(({ title, arms: own }) => ({ title, rows: own.flatMap(rowOf) }));
}

/** What a cell says of what was not measured. Never a zero. */
export const NOT_MEASURED = "not measured";

/** A row of a table of differences: how many questions are in both, then each difference, and its ratio where the measure has one. */
export function comparedCells(differences: readonly MeasuredDifference[]): Cell[] {
  const pairs = largest(
    differences.map(({ found }) => found?.n ?? 0),
    0,
  );
  const cells = differences.flatMap(({ measure, found }): Cell[] => {
    const text = found === null ? "" : withInterval(found.difference, signed(measure.format));
    const difference = found === null ? null : found.n === pairs ? { text } : { text, detail: `n=${found.n}` };
    const ratio = found?.ratio == null ? null : { text: withInterval(found.ratio, times) };
    return measure.hasRatio ? [difference, ratio] : [difference];
  });
  return [{ text: String(pairs) }, ...cells];
}
