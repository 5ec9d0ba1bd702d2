import { largest } from "../../core/text/collections.js";
import { alignedTable, visibleText } from "../base/aligned-table.js";
import { NOT_MEASURED } from "../measures/measured.js";
import type { Cell, ReportTable } from "./report-tables.js";

/** Our own words for a paragraph, a list or a table of Markdown: no character of them is Markdown or HTML. */
export function markdownText(text: string): string {
  return visibleText(text)
    .replace(/[\\`*_[\]|~$]/g, "\\$&")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** Other people's text as code on one line, where nothing of it is Markdown, HTML, a link or a mention. `(empty)` for an empty text. */
export function markdownCode(text: string): string {
  const shown = visibleText(text).trim().replaceAll("|", "\\|");
  if (shown === "") return "(empty)";
  const longest = largest(
    [...shown.matchAll(/`+/g)].map(([run]) => run.length),
    0,
  );
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${shown}${fence}` : `${fence} ${shown} ${fence}`;
}

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
