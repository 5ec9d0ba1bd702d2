/*
 * The report of a run in Markdown: its first lines and main table for a terminal, and everything for the run's folder.
 *
 * Enters: a run with its records. Leaves: texts; the same run gives the same bytes.
 * Untrusted text (ids, messages, model names) is escaped, and its invisible characters are named.
 */

import { alignedTable, visibleText } from "../base/aligned-table.js";
import type { QuestionRecord, RunRecord } from "../base/run-record.js";
import { NOT_MEASURED } from "../measures/measured.js";
import { failureGroups, type ReportContent, reportContent } from "./report-content.js";
import { answerTable, qualityLines } from "./report-quality.js";
import { armTables, type Cell, categoryTables, mainTable, type ReportTable } from "./report-tables.js";
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
  const groups = failureGroups(failed);
  if (groups.length === 0) return [];
  const lines = groups.map(({ stage, message, count }) => `${count} in ${stage}: ${message}`);
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

/** A heading and a table for each group. */
function markdownTables({ caption, columns, groups }: ReportTable): string[] {
  const head = ["Prompts built by", ...columns].map(markdownText);
  return groups.flatMap(({ title, rows }) => [
    `## ${markdownText(caption === null ? title : `${caption}: ${title}`)}`,
    alignedTable(
      head,
      rows.map((row) => [markdownText(row.title), ...row.cells.map(cellText)]),
    ),
  ]);
}

function cellText(cell: Cell): string {
  if (cell === null) return NOT_MEASURED;
  return markdownText(cell.detail === undefined ? cell.text : `${cell.text} ${cell.detail}`);
}
