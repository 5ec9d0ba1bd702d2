import { largest } from "../../core/text/lists.js";

/** Markdown takes no rule that is shorter. */
const LEAST_WIDTH = 3;

/**
 * A table of Markdown whose columns are aligned, so that it reads as text too. Cells are as they are to stand there: nothing is escaped.
 *
 * @param isText whether a column, from 0, holds text, which stands on the left; else numbers, on the right. By default the first does.
 */
export function alignedTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  isText: (column: number) => boolean = (column) => column === 0,
): string {
  const widths = head.map((_, column) =>
    largest(
      [head, ...rows].map((cells) => cells[column]?.length ?? 0),
      LEAST_WIDTH,
    ),
  );
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => (isText(at) ? (cells[at] ?? "").padEnd(width) : (cells[at] ?? "").padStart(width))).join(" | ")} |`;
  const rule = widths.map((width, at) => (isText(at) ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}
