/*
 * Reports of a run, and the comparison of two: tables, charts and notes as one HTML page and as Markdown.
 *
 * Enters: a run with its records.
 * Leaves: texts of files; the same run gives the same bytes.
 * Other people's text (ids, messages, model names) is escaped, and its invisible characters are named.
 */

import type { QuestionRecord, RunRecord } from "../base/run-record.js";
import { markdownCode, markdownTable, markdownText } from "./markdown.js";
import { failureGroups, questionsText, type ReportContent, reportContent } from "./report-content.js";
import { reportPage } from "./report-page.js";
import { answerTable, qualityLines } from "./report-quality.js";
import { armTables, categoryTables, comparisonTable, mainTable, type ReportTable } from "./report-tables.js";
import { reportNotes, reportTitle, runFacts } from "./report-words.js";

/**
 * Renders a run as the texts of `report.html`, one self-contained page, and `report.md`, the tables to paste; also one that is not finished or has no record yet. The same run gives the same bytes. Texts of others (questions' ids,
 * models, messages) are escaped, and what cannot be seen of them is named.
 */
export function renderReports(
  run: RunRecord,
  records: readonly QuestionRecord[],
): { readonly html: string; readonly markdown: string } {
  const content = reportContent(run, records);
  return { html: reportPage(content), markdown: reportMarkdown(content) };
}

/** `report.md`: the table to paste first, then all else. */
function reportMarkdown(content: ReportContent): string {
  const { heading, about, unfinished } = reportTitle(content);
  const { groups, more } = failureGroups(content.failures);
  const failed = groups.flatMap(({ stage, message, count, places }) => [
    `- ${count} in ${stage}: ${markdownCode(message)}`,
    ...places.map(
      ({ arm, conversation, questions }) =>
        `  - ${markdownCode(arm)}, ${markdownCode(conversation)}, ${questionsText(questions)}`,
    ),
  ]);
  const main = mainTable(content);
  const sections = [
    `# ${markdownText(heading)}`,
    qualityLines(content)
      .map((line) => `- ${markdownText(line)}`)
      .join("\n"),
    markdownText(about),
    ...(unfinished === null ? [] : [`**Partial run.** ${markdownText(unfinished)}`]),
    ...(main === null ? [] : [markdownTable(main)]),
    ...[answerTable(content), ...armTables(content)].flatMap((table) => section(table)),
    ...section(
      comparisonTable(content),
      "Against Mem0’s README with the same layout and k, or else the first arm, question by question: mean difference, with its 95 % interval.",
    ),
    ...categoryTables(content).flatMap((table) => section(table)),
    ...(groups.length === 0
      ? []
      : ["## Questions that failed", [...failed, ...(more > 0 ? [`- ${more} more messages`] : [])].join("\n")]),
    "## How to read this",
    reportNotes(content)
      .map((note) => `- ${markdownText(note)}`)
      .join("\n"),
    "## Settings and machine",
    runFacts(content.run)
      .map(([name, value]) => `- ${name}: ${markdownCode(value)}`)
      .join("\n"),
  ];
  return `${sections.join("\n\n")}\n`;
}

/** A table under its caption; nothing where nothing of it was measured. */
function section(table: ReportTable | null, about?: string): readonly string[] {
  if (table === null) return [];
  return [`## ${markdownText(table.caption)}`, ...(about === undefined ? [] : [about]), markdownTable(table)];
}
