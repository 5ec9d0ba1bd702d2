import type { FailedQuestion } from "../base/run-record.js";
import { htmlTable, Markup, markup } from "./html.js";
import { failureGroups, type ReportContent } from "./report-content.js";
import { answerTable, qualityLines } from "./report-quality.js";
import { armTables, categoryTables } from "./report-tables.js";
import { reportNotes, reportTitle, runFacts } from "./report-words.js";

/** `report.html`: one file that loads nothing and runs no scripts. */
export function reportPage(content: ReportContent): string {
  const { heading, about, unfinished } = reportTitle(content);
  const answers = answerTable(content);
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
${section("Answers", [answers && htmlTable(answers)])}${section("Figures", [...armTables(content).map(htmlTable), byCategory(content)])}${failures(content.failures)}<section>
<h2>How to read this</h2>
<ul class="notes">${reportNotes(content).map(
    (note) => markup`<li>${note}</li>
`,
  )}</ul>
</section>
<section>
<h2>Settings and machine</h2>
<dl>${runFacts(content.run).map(
    ([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>
`,
  )}</dl>
</section>
<footer>Made by memprefix ${content.run.memprefix}. Every answer, with all that was measured on the way, is in results.jsonl; run.json has the settings to make it again.</footer>
</main>
</body>
</html>
`.source;
}

/** Emphasises a line's first sentence: the result, before its figures. */
function firstStrong(line: string): Markup {
  const end = line.indexOf(". ") + 1;
  return end === 0
    ? markup`<strong>${line}</strong>`
    : markup`<strong>${line.slice(0, end)}</strong>${line.slice(end)}`;
}

function section(title: string, parts: readonly (Markup | null)[]): Markup | null {
  return parts.every((part) => part === null)
    ? null
    : markup`<section>
<h2>${title}</h2>
${parts}</section>
`;
}

function byCategory(content: ReportContent): Markup | null {
  const tables = categoryTables(content);
  return tables.length === 0
    ? null
    : markup`<details><summary>By category</summary>
${tables.map(htmlTable)}</details>
`;
}

function failures(failed: readonly FailedQuestion[]): Markup | null {
  const { groups, more } = failureGroups(failed);
  if (groups.length === 0) return null;
  return markup`<section>
<h2>Questions that failed</h2>
<ul class="notes">${groups.map(
    ({ stage, message, count }) => markup`<li>${count} in ${stage}: <code>${message}</code></li>
`,
  )}</ul>
${
  more > 0
    ? markup`<p>${more} more messages are in results.jsonl, which names the questions.</p>
`
    : null
}</section>
`;
}

const REPORT_STYLE = `
:root{color-scheme:light dark;--paper:#fff;--ink:#16191d;--soft:#59616b;--rule:#dfe3e8;--tint:#f5f7f9;--accent:#0b5cad;--warn:#8a3b00;--warn-tint:#fff4e8}
@media screen and (prefers-color-scheme:dark){:root{--paper:#12151a;--ink:#e8ebef;--soft:#a2abb6;--rule:#2c333c;--tint:#1a1f26;--accent:#6cb2ff;--warn:#ffb57a;--warn-tint:#2c2016}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:break-word}
main{max-width:70rem;margin:0 auto;padding:2.5rem 1rem 4rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .35rem;letter-spacing:-.01em}
h2{font-size:1.2rem;margin:3rem 0 .75rem;letter-spacing:-.005em}
p{margin:.5rem 0;max-width:46rem}
.about,small,.none,dt{color:var(--soft)}
.about{margin:0}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.banner{border-left:4px solid var(--warn);background:var(--warn-tint);padding:.6rem .9rem;margin:1.25rem 0;max-width:none}
.banner strong{color:var(--warn)}
.quality{border-left:4px solid var(--accent);background:var(--tint);padding:.6rem .9rem;margin:1.25rem 0;list-style:none}
.quality li{margin:.25rem 0;max-width:62rem}
.scroll{overflow-x:auto;margin:0 0 1.5rem;background:linear-gradient(to left,var(--paper) 40%,transparent) right/3rem 100% no-repeat local,linear-gradient(to left,var(--rule),transparent) right/1.1rem 100% no-repeat scroll}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;font-size:.875rem;line-height:1.4;min-width:100%}
caption{text-align:left;font-weight:600;padding:0 0 .4rem;white-space:nowrap}
th,td{padding:.36rem .7rem;text-align:right;vertical-align:top;border-top:1px solid var(--rule);font-variant-numeric:tabular-nums;white-space:nowrap}
thead th{border-top:0;border-bottom:1px solid var(--ink);vertical-align:bottom;font-weight:600;white-space:normal;min-width:4.5rem}
th:first-child{text-align:left;font-weight:400;position:sticky;left:0;background:var(--paper);min-width:0;padding-left:0}
thead th:first-child{font-weight:600}
.group th:first-child{font-weight:600;padding-top:.9rem;background:none}
tbody tr:first-child th,tbody tr:first-child td{border-top-color:transparent}
tbody tr:not(.group):hover th,tbody tr:not(.group):hover td{background:var(--tint)}
small{font-size:.8125rem}
details{margin:.75rem 0}
summary{cursor:pointer;color:var(--accent);width:fit-content}
details[open]>summary{margin-bottom:.75rem}
.notes{padding-left:1.1rem;max-width:46rem}
.notes li{margin:.4rem 0}
dl{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.3rem 1.25rem;margin:0;font-size:.9375rem}
dd{margin:0;overflow-wrap:anywhere}
footer{margin-top:3rem;color:var(--soft);font-size:.875rem}
@media (max-width:30rem){main{padding-top:1.5rem}h1{font-size:1.45rem}dl{grid-template-columns:1fr;gap:0}dd{margin:0 0 .6rem}th,td{padding:.36rem .5rem}th:first-child{min-width:8rem;max-width:11rem;white-space:normal}.group th:first-child{max-width:none;white-space:nowrap}}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#ccc;--tint:#fff}html{font-size:12px}main{max-width:none;padding:0}.scroll{overflow:visible}th:first-child{position:static}th,td{white-space:normal;padding:.2rem .3rem}table{font-size:.75rem}tr{break-inside:avoid}h2,caption{break-after:avoid}}
`;
