/*
 * The report of a run: tables and notes as one HTML page, and its first lines for a terminal.
 *
 * Enters: a run with its records. Leaves: texts; the same run gives the same bytes.
 * Untrusted text (ids, messages, model names) is escaped, and its invisible characters are named.
 */

import { largest } from "../../core/text/collections.js";
import { alignedTable, visibleText } from "../base/aligned-table.js";
import type { QuestionRecord, RunRecord } from "../base/run-record.js";
import { NOT_MEASURED } from "../measures/measured.js";
import { reportContent } from "./report-content.js";
import { reportPage } from "./report-page.js";
import { qualityLines } from "./report-quality.js";
import { type Cell, mainTable, type ReportTable, type TableRow } from "./report-tables.js";
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
    markdownText(about),
    ...(unfinished === null ? [] : [`**Partial run.** ${markdownText(unfinished)}`]),
    ...(table === null ? [] : markdownTables(table)),
    qualityLines(content)
      .map((line) => `- ${markdownText(line)}`)
      .join("\n"),
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

/** Most characters in a line of a table, and in its row titles. */
const [WIDTH, TITLE_WIDTH] = [100, 40];

/** A heading and a table for each group; more tables where its columns do not fit {@link WIDTH}. */
function markdownTables({ rowsAre, columns, groups }: ReportTable): string[] {
  const head = [rowsAre, ...columns].map(markdownText);
  return groups.flatMap(({ title, rows }) => {
    const lines = rows.flatMap(wrappedRow);
    const widths = head.map((name, column) =>
      largest([name, ...lines.map((line) => line[column] ?? "")].map(lengthOf)),
    );
    return [
      `## ${markdownText(title)}`,
      ...columnsThatFit(widths).map((kept) => {
        const cells = (line: readonly string[]) => [0, ...kept].map((column) => line[column] ?? "");
        return alignedTable(cells(head), lines.map(cells));
      }),
    ];
  });
}

function lengthOf(text: string): number {
  return text.length;
}

/** The columns of figures, from 1, in as few tables as fit beside the row titles, which are column 0. */
function columnsThatFit([titles = 0, ...widths]: readonly number[]): number[][] {
  const [borders, separator] = [4, 3];
  const tables: number[][] = [];
  let left = 0;
  for (const [at, width] of widths.entries()) {
    if (width + separator > left) {
      tables.push([]);
      left = WIDTH - titles - borders;
    }
    tables.at(-1)?.push(at + 1);
    left -= width + separator;
  }
  return tables;
}

/** A row's cells. A long title goes on in rows without figures. */
function wrappedRow({ title, cells }: TableRow): string[][] {
  const titles = [""];
  for (const part of title.split(/(?<=, )/)) {
    const last = titles.at(-1) ?? "";
    if (last !== "" && (last + part.trimEnd()).length > TITLE_WIDTH) titles.push(part);
    else titles[titles.length - 1] = last + part;
  }
  return titles.map((line, at) => [markdownText(line.trimEnd()), ...(at === 0 ? cells.map(cellText) : [])]);
}

function cellText(cell: Cell): string {
  if (cell === null) return NOT_MEASURED;
  return markdownText(cell.detail === undefined ? cell.text : `${cell.text} ${cell.detail}`);
}
