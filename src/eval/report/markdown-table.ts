import { alignedTable } from "../base/aligned-table.js";
import { markdownCode, markdownText } from "./markdown-text.js";
import { type Cell, NOT_MEASURED, type ReportTable } from "./report-table.js";

/** A table in Markdown, padded to be read as text too. Groups become a part of the row title. */
export function markdownTable({ rowsAre, columns, groups }: ReportTable): string {
  const head = [rowsAre, ...columns].map(markdownText);
  const lines = groups.flatMap(({ title, rows }) =>
    rows.map((row) => [markdownText(title === "" ? row.title : `${title}: ${row.title}`), ...row.cells.map(textOf)]),
  );
  return alignedTable(head, lines);
}

function textOf(cell: Cell): string {
  if (cell === null) return NOT_MEASURED;
  const text = cell.isCode ? markdownCode(cell.text) : markdownText(cell.text);
  return cell.detail === undefined ? text : `${text} ${markdownText(cell.detail)}`;
}
