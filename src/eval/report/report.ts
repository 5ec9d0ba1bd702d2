/*
 * Reports of a run, and the comparison of two: tables, charts and notes as one HTML page and as Markdown.
 *
 * Enters: a run with its records, and prices.
 * Leaves: texts of files; the same run gives the same bytes.
 * Other people's text (ids, messages, model names) is escaped, and its invisible characters are named.
 */

import type { QuestionRecord, RunRecord } from "../base/run-record.js";
import { PRICES, type Price } from "../measures/prices.js";
import { reportContent } from "./report-content.js";
import { reportMarkdown } from "./report-markdown.js";
import { reportPage } from "./report-page.js";

/** A run's reports, as the texts of their files. */
export interface RenderedReports {
  /** `report.html`: one self-contained page. */
  readonly html: string;
  /** `report.md`: the tables to paste. */
  readonly markdown: string;
}

export interface ReportOptions {
  /** What costs are taken at; default: {@link PRICES}. */
  readonly prices?: readonly Price[] | undefined;
}

/**
 * Renders a run, also one that is not finished or has no record yet. The same run gives the same bytes. Texts of others (questions' ids,
 * models, messages) are escaped, and what cannot be seen of them is named.
 */
export function renderReports(
  run: RunRecord,
  records: readonly QuestionRecord[],
  options: ReportOptions = {},
): RenderedReports {
  const content = reportContent(run, records, options.prices ?? PRICES);
  return { html: reportPage(content), markdown: reportMarkdown(content) };
}
