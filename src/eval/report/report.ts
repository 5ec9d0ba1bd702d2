/*
 * The report of a run in Markdown: its first lines and main table for a terminal, and everything for the run's folder.
 *
 * Enters: a run with its records. Leaves: texts; the same run gives the same bytes.
 * Untrusted text (ids, messages, model names) is escaped, and its invisible characters are named.
 */

import { largest } from "../../core/text/collections.js";
import { alignedTable, visibleText } from "../base/aligned-table.js";
import type { QuestionRecord, RunRecord } from "../base/run-record.js";
import { NOT_MEASURED } from "../measures/measured.js";
import { failureGroups, type ReportContent, reportContent } from "./report-content.js";
import { answerTable, qualityLines } from "./report-quality.js";
import { armTables, type Cell, categoryTables, mainTable, type ReportTable, type TableRow } from "./report-tables.js";
import { reportNotes, reportTitle, runFacts } from "./report-words.js";

/** Renders a run, even an unfinished or empty one. `summary` is the beginning of `whole`. */
export function renderReport(
  run: RunRecord,
  records: readonly QuestionRecord[],
): { readonly summary: string; readonly whole: string } {
  const content = reportContent(run, records);
  const { heading, about, unfinished } = reportTitle(content);
  const main = mainTable(content);
  const summary = [
    `# ${markdownText(heading)}`,
    markdownText(about),
    ...(unfinished === null ? [] : [`**Partial run.** ${markdownText(unfinished)}`]),
    ...(main === null ? [] : markdownTables(main)),
    list(qualityLines(content)),
  ].join("\n\n");
  const answers = answerTable(content);
  const tables = [...(answers === null ? [] : [answers]), ...armTables(content), ...categoryTables(content)];
  const whole = [
    summary,
    ...tables.flatMap(markdownTables),
    ...failures(content),
    "## How to read this",
    list(reportNotes(content)),
    "## Settings and machine",
    list(runFacts(run).map(([name, value]) => `${name}: ${value}`)),
    `Every answer, with all that was measured on the way, is in results.jsonl; run.json has the settings to make it again.\n`,
  ].join("\n\n");
  return { summary, whole };
}

function failures({ failures: failed }: ReportContent): string[] {
  const { groups, more } = failureGroups(failed);
  if (groups.length === 0) return [];
  const lines = groups.map(({ stage, message, count }) => `${count} in ${stage}: ${message}`);
  if (more > 0) lines.push(`${more} more messages are in results.jsonl, which names the questions.`);
  return ["## Questions that failed", list(lines)];
}

function list(lines: readonly string[]): string {
  return lines.map((line) => `- ${markdownText(line)}`).join("\n");
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
function markdownTables({ caption, columns, groups }: ReportTable): string[] {
  const head = ["Prompts built by", ...columns].map(markdownText);
  return groups.flatMap(({ title, rows }) => {
    const lines = rows.flatMap(wrappedRow);
    const widths = head.map((name, column) =>
      largest([name, ...lines.map((line) => line[column] ?? "")].map(lengthOf)),
    );
    return [
      `## ${markdownText(caption === null ? title : `${caption}: ${title}`)}`,
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
