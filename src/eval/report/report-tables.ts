import { categoryTitle, type EvalArm } from "../base/run-record.js";
import { type ArmSummary, armLabel, groupArms, type QuestionsSummary } from "../measures/arm-summary.js";
import { type Format, type Measured, milliseconds, percent, score, tokens } from "../measures/measured.js";
import type { ReportContent } from "./report-content.js";

interface ArmColumn {
  readonly title: string;
  readonly cell: (summary: QuestionsSummary) => Cell;
}

/** A mean, median or share; adds its number of questions where some answered ones are missing. */
function measured(title: string, format: Format, pick: (summary: QuestionsSummary) => Measured | null): ArmColumn {
  return {
    title,
    cell: (summary) => {
      const found = pick(summary);
      if (found === null) return null;
      const text = format(found.value);
      return found.n === summary.answered ? { text } : { text, detail: `n=${found.n}` };
    },
  };
}

/** A share of something always counted: with answers but no figure, there was nothing to count. */
function counted(title: string, pick: (summary: QuestionsSummary) => Measured | null): ArmColumn {
  const { cell } = measured(title, percent, pick);
  return { title, cell: (summary) => cell(summary) ?? (summary.answered === 0 ? null : { text: "none" }) };
}

const COUNTS: readonly ArmColumn[] = [
  { title: "Answered", cell: ({ answered }) => ({ text: String(answered) }) },
  { title: "Failed", cell: ({ failed }) => ({ text: String(failed) }) },
];

const CUT: readonly ArmColumn[] = [
  { title: "Cut", cell: ({ cut }) => ({ text: String(cut) }) },
  { title: "Fresh starts", cell: ({ freshStarts }) => ({ text: String(freshStarts) }) },
];

const CACHE: readonly ArmColumn[] = [
  measured("Prompt tokens", tokens, ({ promptTokens }) => promptTokens),
  measured("Cached", tokens, ({ cachedTokens }) => cachedTokens),
  measured("Uncached", tokens, ({ uncachedTokens }) => uncachedTokens),
  measured("Hit ratio", percent, ({ hitRatio }) => hitRatio),
];

const TIMES: readonly ArmColumn[] = [
  measured("TTFT p50 ms", milliseconds, ({ ttftP50 }) => ttftP50),
  measured("TTFT p95 ms", milliseconds, ({ ttftP95 }) => ttftP95),
  measured("Total p50 ms", milliseconds, ({ totalP50 }) => totalP50),
  measured("Search p50 ms", milliseconds, ({ searchMs }) => searchMs),
  measured("Compose p50 ms", milliseconds, ({ composeMs }) => composeMs),
];

const DEPTH: readonly ArmColumn[] = [
  measured("Memories given", tokens, ({ memoriesGiven }) => memoriesGiven),
  measured("Tries", tokens, ({ tries }) => tries),
  measured("Sure", percent, ({ sure }) => sure),
];

const QUALITY: readonly ArmColumn[] = [
  counted("Evidence in prompt", ({ evidenceRecall }) => evidenceRecall),
  measured("F1", score, ({ f1 }) => f1),
  measured("Log-likelihood", score, ({ logLikelihood }) => logLikelihood),
  measured("Judged right", percent, ({ judge }) => judge),
];

function armTable(caption: string | null, columns: readonly ArmColumn[], groups: readonly RowGroup[]): ReportTable {
  return { caption, columns: columns.map(({ title }) => title), groups };
}

function armRows(summaries: readonly ArmSummary[], columns: readonly ArmColumn[]): RowGroup[] {
  return armGroups(summaries, ({ arm, overall }) => ({
    title: armLabel(arm),
    cells: columns.map(({ cell }) => cell(overall)),
  }));
}

/** The main table's columns, most important first. */
const MAIN: readonly ArmColumn[] = [
  CACHE[0],
  CACHE[2],
  CACHE[3],
  TIMES[0],
  QUALITY[3],
  QUALITY[2],
  QUALITY[1],
  QUALITY[0],
].flatMap((column) => column ?? []);

/** The table to paste, of measured columns alone. */
export function mainTable({ summaries }: ReportContent): ReportTable | null {
  return measuredOf(armTable(null, MAIN, armRows(summaries, MAIN)));
}

export function armTables({ summaries }: ReportContent): ReportTable[] {
  const table = (caption: string, columns: readonly ArmColumn[]) =>
    measuredOf(armTable(caption, columns, armRows(summaries, columns)));
  const adaptive = summaries.filter(({ arm }) => arm.depth !== null);
  return [
    table("Prompts and cache, tokens per question", [...COUNTS, ...CACHE, ...CUT]),
    measuredOf(armTable("Adaptive depth, means", DEPTH, armRows(adaptive, DEPTH))),
    table("Time", TIMES),
    table("Evidence and answers", QUALITY),
  ].filter((each) => each !== null);
}

/** Figures that no arm has. */
export function notMeasured({ summaries }: ReportContent): string[] {
  return [...CACHE, ...TIMES, ...QUALITY]
    .filter(({ cell }) => summaries.every(({ overall }) => cell(overall) === null))
    .map(({ title }) => title);
}

export function categoryTables({ summaries }: ReportContent): ReportTable[] {
  const columns = [...COUNTS, TIMES[0], CACHE[2], CACHE[3], ...QUALITY].filter((column) => column !== undefined);
  const numbers = new Set(summaries.flatMap(({ categories }) => categories.map(({ category }) => category)));
  return [...numbers]
    .sort((a, b) => a - b)
    .flatMap((number) => {
      const groups = armGroups(summaries, ({ arm, categories }) =>
        categories
          .filter(({ category }) => category === number)
          .map(({ summary }) => ({ title: armLabel(arm), cells: columns.map(({ cell }) => cell(summary)) })),
      );
      return measuredOf(armTable(categoryTitle(number), columns, groups)) ?? [];
    });
}

/** A figure, with a qualifying count. Null: not measured. */
export type Cell = { readonly text: string; readonly detail?: string } | null;

export interface TableRow {
  readonly title: string;
  /** One per column. */
  readonly cells: readonly Cell[];
}

export interface RowGroup {
  readonly title: string;
  readonly rows: readonly TableRow[];
}

/** A column of row titles, then columns of figures. */
export interface ReportTable {
  /** Null: the main table. */
  readonly caption: string | null;
  readonly columns: readonly string[];
  readonly groups: readonly RowGroup[];
}

/** Rows of arms, in their comparable groups. */
export function armGroups<A extends { readonly arm: EvalArm }>(
  arms: readonly A[],
  rowOf: (arm: A) => TableRow | readonly TableRow[],
): RowGroup[] {
  return groupArms(arms, ({ arm }) => arm).map(({ title, arms: own }) => ({ title, rows: own.flatMap(rowOf) }));
}

/** Cells in which nothing was counted. */
const NOTHING: ReadonlySet<string> = new Set(["0", "none"]);

/** The table without columns in which nothing was measured or counted; null if none is left. */
function measuredOf({ columns, groups, ...table }: ReportTable): ReportTable | null {
  const all = groups.flatMap(({ rows }) => rows);
  const isMeasured = (at: number) => all.some(({ cells }) => cells[at] != null && !NOTHING.has(cells[at].text));
  const kept = <T>(values: readonly T[]) => values.filter((_, at) => isMeasured(at));
  if (kept(columns).length === 0) return null;
  const left = groups.map(({ title, rows }) => ({
    title,
    rows: rows.map((row) => ({ ...row, cells: kept(row.cells) })),
  }));
  return { ...table, columns: kept(columns), groups: left };
}
