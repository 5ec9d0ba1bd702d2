/*
 * The report of a run: tables, a chart and notes as one HTML page, and its first lines for a terminal.
 *
 * Enters: a run with its records. Leaves: texts; the same run gives the same bytes.
 * Untrusted text (ids, messages, model names) is escaped, and its invisible characters are named.
 */

import { alignedTable, visibleText } from "../base/aligned-table.js";
import type { QuestionRecord, RunRecord } from "../base/run-record.js";
import { NOT_MEASURED } from "../measures/measured.js";
import { reportContent } from "./report-content.js";
import { reportPage } from "./report-page.js";
import { qualityLines } from "./report-quality.js";
import { type Cell, mainTable, type ReportTable } from "./report-tables.js";
import { reportTitle } from "./report-words.js";

/**
 * Renders a run, even an unfinished or empty one: `html`, the self-contained page of `report.html`, and `summary`, its first lines and main
 * table in Markdown, for a terminal.
 */
export function renderReport(
  run: RunRecord,
  records: readonly QuestionRecord[],
): { readonly html: string; readonly summary: string } {
  const content = reportContent(run, records);
  const { heading, about, unfinished } = reportTitle(content);
  const table = mainTable(content);
  const summary = [
    `# ${markdownText(heading)}`,
    qualityLines(content)
      .map((line) => `- ${markdownText(line)}`)
      .join("\n"),
    markdownText(about),
    ...(unfinished === null ? [] : [`**Partial run.** ${markdownText(unfinished)}`]),
    ...(table === null ? [] : [markdownTable(table)]),
  ];
  return { html: reportPage(content), summary: summary.join("\n\n") };
}

/** Text without any character of Markdown or HTML. */
function markdownText(text: string): string {
  return visibleText(text)
    .replace(/[\\`*_[\]|~$]/g, "\\$&")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** Groups become part of the row title. */
function markdownTable({ rowsAre, columns, groups }: ReportTable): string {
  const lines = groups.flatMap(({ title, rows }) =>
    rows.map((row) => [markdownText(`${title}: ${row.title}`), ...row.cells.map(cellText)]),
  );
  return alignedTable([rowsAre, ...columns].map(markdownText), lines);
}

function cellText(cell: Cell): string {
  if (cell === null) return NOT_MEASURED;
  return markdownText(cell.detail === undefined ? cell.text : `${cell.text} ${cell.detail}`);
}
