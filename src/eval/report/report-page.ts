import type { FailedQuestion } from "../base/run-record.js";
import { type ArmSummary, armLabel, groupArms } from "../measures/arm-summary.js";
import { failureGroups, questionsText } from "../measures/failure-list.js";
import { milliseconds, tokens } from "../measures/figures.js";
import { htmlTable, Markup, markup } from "./html.js";
import { reportCharts } from "./report-charts.js";
import type { ReportContent } from "./report-content.js";
import { reportTitle, runFacts } from "./report-facts.js";
import { reportNotes } from "./report-notes.js";
import { answerTables, qualityLines } from "./report-quality.js";
import { REPORT_STYLE } from "./report-style.js";
import { armTables, categoryTables, comparisonTable, costTable, priceTable } from "./report-tables.js";
import { tradeFigure, tradeTable } from "./report-trade.js";

/** Different messages of failures that are listed, each with all its questions; results.jsonl has all. */
const LISTED_MESSAGES = 50;

/** `report.html`: one file that asks for nothing else and runs nothing. */
export function reportPage(content: ReportContent): string {
  const { heading, about, unfinished } = reportTitle(content);
  const banner =
    unfinished === null
      ? null
      : markup`<p class="banner" role="note"><strong>Partial run.</strong> ${unfinished}</p>
`;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<meta name="color-scheme" content="light dark"/>
<title>${heading}</title>
<style>${new Markup(REPORT_STYLE)}</style>
</head>
<body>
<main>
<header>
<h1>${heading}</h1>
<p class="about">${about}</p>
</header>
${banner}<ul class="quality">${qualityLines(content).map(
    (line, at) => markup`<li>${at === 0 ? firstStrong(line) : line}</li>
`,
  )}</ul>
${glance(content)}${quality(content)}<section>
<h2>Charts</h2>
${tradeFigure(content)}${reportCharts(content)}</section>
<section>
<h2>Figures</h2>
${armTables(content).map(htmlTable)}<details><summary>By category</summary>
${categoryTables(content).map(htmlTable)}</details>
</section>
<section>
<h2>Differences</h2>
<p>Each way to build prompts against Mem0’s README with the same layout and k, or else against the first arm: mean difference, and median ratio, of the same question in both, with 95 % intervals.</p>
${htmlTable(comparisonTable(content))}</section>
<section>
<h2>Cost</h2>
${htmlTable(costTable(content))}<details><summary>Prices</summary>
${htmlTable(priceTable(content))}</details>
</section>
${failures(content.failures)}<section>
<h2>How to read this</h2>
<ul class="notes">${reportNotes(content).map(
    (note) => markup`<li>${note}</li>
`,
  )}</ul>
</section>
<section>
<h2>Settings and machine</h2>
<dl>${runFacts(content.run).map(
    ({ name, value }) => markup`<dt>${name}</dt><dd>${value}</dd>
`,
  )}</dl>
</section>
<footer>Made by memstem ${content.run.memstem}. Every answer, with all that was measured on the way, is in results.jsonl; run.json has the settings to make it again.</footer>
</main>
</body>
</html>
`.source;
}

/** A line whose first sentence stands out: what a run shows, before its figures. */
function firstStrong(line: string): Markup {
  const end = line.indexOf(". ") + 1;
  return end === 0
    ? markup`<strong>${line}</strong>`
    : markup`<strong>${line.slice(0, end)}</strong>${line.slice(end)}`;
}

function quality(content: ReportContent): Markup | null {
  const tables = answerTables(content);
  return tables.length === 0
    ? null
    : markup`<section>
<h2>Answers</h2>
${[tradeTable(content), ...tables].map(htmlTable)}</section>
`;
}

/**
 * Per group, the arm that leaves least to prefill beside Mem0’s README; nothing where that was not measured, and nothing of a partial run,
 * whose arms did not answer the same questions.
 */
function glance({ run, summaries }: ReportContent): Markup | null {
  if (run.finishedAt === null) return null;
  const cards = groupArms(summaries, ({ arm }) => arm).flatMap(({ title, arms }) => {
    const readme = arms.find(({ arm }) => arm.policy === "readme");
    const least = leastUncached(arms.filter((summary) => summary !== readme));
    const [before, after] = [readme?.overall.uncachedTokens, least?.overall.uncachedTokens];
    if (readme === undefined || least === null || before == null || after == null) return [];
    return [
      markup`<li><h3>${title}</h3>
<p class="big"><span>${tokens(before.value)} →</span> <strong>${tokens(after.value)}</strong></p>
<p>uncached tokens a question, Mem0’s README → ${armLabel(least.arm)}${timesOf(readme, least)}</p></li>
`,
    ];
  });
  return cards.length === 0
    ? null
    : markup`<ul class="glance">${cards}</ul>
`;
}

function leastUncached(arms: readonly ArmSummary[]): ArmSummary | null {
  const [least] = arms
    .filter(({ overall }) => overall.uncachedTokens !== null)
    .sort((a, b) => (a.overall.uncachedTokens?.value ?? 0) - (b.overall.uncachedTokens?.value ?? 0));
  return least ?? null;
}

function timesOf(readme: ArmSummary, least: ArmSummary): string {
  const [before, after] = [readme.overall.ttftP50, least.overall.ttftP50];
  if (before === null || after === null) return "";
  return `; median TTFT ${milliseconds(before.value)} → ${milliseconds(after.value)} ms`;
}

function failures(failed: readonly FailedQuestion[]): Markup | null {
  const groups = failureGroups(failed);
  if (groups.length === 0) return null;
  const more = groups.length - LISTED_MESSAGES;
  return markup`<section>
<h2>Questions that failed</h2>
${groups.slice(0, LISTED_MESSAGES).map(
  ({ stage, message, count, places }) => markup`<p>${count} in ${stage}: <code>${message}</code></p>
<ul class="notes">${places.map(
    ({ arm, conversation, questions }) => markup`<li>${arm}, ${conversation}, ${questionsText(questions)}</li>
`,
  )}</ul>
`,
)}${
  more > 0
    ? markup`<p>${more} more messages are in results.jsonl.</p>
`
    : null
}</section>
`;
}
