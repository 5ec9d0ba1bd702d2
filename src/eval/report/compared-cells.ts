import { largest } from "../../core/text/lists.js";
import type { MeasuredDifference } from "../measures/compared-measures.js";
import { signed, times, withInterval } from "../measures/figures.js";
import type { Cell } from "./report-table.js";

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
