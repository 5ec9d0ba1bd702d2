import { groupBy } from "../../core/text/collections.js";
import { countedIn, type EvalArm, isAnswered, type QuestionRecord } from "../base/run-record.js";
import { type ArmSummary, armLabel, groupArms } from "../measures/arm-summary.js";
import type { Interval } from "../measures/bootstrap.js";
import {
  dollars,
  milliseconds,
  NOT_MEASURED,
  percent,
  points,
  quantile,
  signed,
  tokens,
  valuesOf,
  withInterval,
} from "../measures/measured.js";
import { budgetLabel } from "../run/arms.js";
import { htmlTable, type Markup, markup } from "./html.js";
import type { ReportContent } from "./report-content.js";
import { armGroups, type Cell, type ReportTable, type TableRow } from "./report-tables.js";
import { type ChartRow, rowChart, scatterChart, shareChart } from "./svg-charts.js";

/** Turns that a point of the lines over turns averages. */
const WINDOW = 9;
/** Colours and dashes that the style sheet has for lines. */
const LINE_STYLES = 8;
const QUARTERS = ["First quarter", "Second", "Third", "Last"] as const;
const SPREAD = [0.05, 0.25, 0.5, 0.75, 0.95] as const;

/** All charts, one panel per group of arms, each with the same figures as a table. */
export function reportCharts(content: ReportContent): Markup {
  return markup`${cachedShareFigure(content)}${spreadFigure(content)}${uncachedFigure(content)}`;
}

/** One chart of a figure, with its figures as rows of the figure's table. */
export interface Panel {
  readonly title: string;
  /** Null where nothing was measured. */
  readonly chart: Markup | null;
  readonly rows: readonly TableRow[];
}

function figure(
  title: string,
  about: string,
  table: Pick<ReportTable, "caption" | "columns">,
  panels: readonly Panel[],
): Markup {
  const caption = markup`<figcaption><strong>${title}</strong> <span>${about}</span></figcaption>`;
  if (panels.every(({ chart }) => chart === null)) {
    return markup`<figure>
${caption}
<p class="none">${NOT_MEASURED} in this run</p>
</figure>
`;
  }
  const groups = panels.map(({ title, rows }) => ({ title, rows }));
  return markup`<figure>
${caption}
<div class="${panels.length % 2 === 0 ? "panels even" : "panels"}">
${panels.map(
  ({
    title,
    chart,
  }) => markup`<div class="panel"><h3>${title}</h3>${chart ?? markup`<p class="none">${NOT_MEASURED}</p>`}</div>
`,
)}</div>
<details><summary>The same as a table</summary>
${htmlTable({ ...table, rowsAre: "Prompts built by", groups })}</details>
</figure>
`;
}

function cachedShareFigure({ run, records }: ReportContent): Markup {
  const familiar = policyStyles(run.arms);
  const panels = groupArms(run.arms, (arm) => arm).map(({ title, arms }, index) => {
    const lines = arms.map((arm) => ({ arm, turns: cachedOverTurns(ofArm(records, arm), WINDOW) }));
    // Lines that a panel can show apart: the baseline's, and of the others those that end highest, in the run's order.
    const end = ({ turns }: (typeof lines)[number]) => turns.at(-1)?.share ?? -1;
    const others = lines.filter(({ arm }) => arm.policy !== "readme").toSorted((a, b) => end(b) - end(a));
    const kept = new Set(others.slice(0, LINE_STYLES));
    const shown = lines.filter((line) => line.arm.policy === "readme" || kept.has(line));
    const styles = panelStyles(
      shown.map(({ arm }) => arm),
      familiar,
    );
    const described = lines.map(({ arm, turns }) => {
      const last = turns.at(-1);
      return `${armLabel(arm)}: ${last === undefined ? NOT_MEASURED : `${percent(last.share)} at the end`}`;
    });
    const drawn = shown.map(({ arm, turns }) => ({
      style: styles.get(arm) ?? BASE,
      points: turns.map(({ turn, share }) => ({ x: turn, share })),
    }));
    const text = {
      id: `turns-${index}`,
      title: `Cached share over turns, ${title}`,
      description: described.join("; "),
    };
    return {
      title,
      chart: lines.every(({ turns }) => turns.length === 0)
        ? null
        : markup`${legend(styles)}${shareChart(text, "question of the conversation", drawn)}`,
      rows: lines.map(({ arm, turns }) => ({
        title: armLabel(arm),
        cells: QUARTERS.map((_, quarter) => {
          const length = turns.length / QUARTERS.length;
          const part = turns.slice(Math.round(quarter * length), Math.round((quarter + 1) * length));
          if (part.length === 0) return null;
          return { text: percent(part.reduce((sum, { share }) => sum + share, 0) / part.length) };
        }),
      })),
    };
  });
  return figure(
    "Cached share over turns.",
    `Cached tokens ÷ prompt tokens, averaged over ${WINDOW} neighbouring questions and all conversations. Higher is better. A panel has at most ${LINE_STYLES} lines beside Mem0’s README: those that end highest; the table has all.`,
    { caption: "Cached share by quarter of the conversation", columns: QUARTERS },
    panels,
  );
}

function spreadFigure({ run, records }: ReportContent): Markup {
  const rows = run.arms.map((arm): ArmRow => {
    const spread = spreadOf(ofArm(records, arm));
    return {
      arm,
      shape: spread && { kind: "spread", quantiles: spread },
      note: spread === null ? NOT_MEASURED : `${milliseconds(spread[2])} ms`,
      cells: SPREAD.map((_, at) => spread && { text: milliseconds(spread[at] ?? 0) }),
    };
  });
  return figure(
    "Time to the first token.",
    "Milliseconds: line from the 5th to the 95th percentile, box from the 25th to the 75th, mark at the median. Shorter is better.",
    { caption: "TTFT percentiles, ms", columns: SPREAD.map((share) => `p${100 * share}`) },
    rowPanels("ttft", "Time to the first token", rows),
  );
}

function uncachedFigure({ summaries }: ReportContent): Markup {
  const rows = summaries.map(({ arm, overall: { uncachedTokens } }): ArmRow => {
    const note = uncachedTokens === null ? NOT_MEASURED : tokens(uncachedTokens.value);
    return {
      arm,
      shape: uncachedTokens && { kind: "bar", value: uncachedTokens.value },
      note,
      cells: [uncachedTokens && { text: note, detail: `n=${uncachedTokens.n}` }],
    };
  });
  return figure(
    "Uncached tokens.",
    "What the engine had to prefill, a mean per question. Shorter is better.",
    { caption: "Uncached tokens per question", columns: ["Uncached tokens"] },
    rowPanels("uncached", "Uncached tokens", rows),
  );
}

/** An arm's row of a chart, and the same as cells. */
interface ArmRow extends Pick<ChartRow, "shape" | "note"> {
  readonly arm: EvalArm;
  readonly cells: readonly Cell[];
}

function rowPanels(id: string, name: string, rows: readonly ArmRow[]): Panel[] {
  return groupArms(rows, ({ arm }) => arm).map(({ title, arms }, index) => {
    const description = arms.map(({ arm, note }) => `${armLabel(arm)}: ${note}`).join("; ");
    const about = { id: `${id}-${index}`, title: `${name}, ${title}`, description };
    const drawn = arms.map(({ arm, ...row }) => ({ ...row, label: armLabel(arm), style: rowStyle(arm) }));
    return {
      title,
      chart: arms.every(({ shape }) => shape === null) ? null : rowChart(about, drawn),
      rows: arms.map(({ arm, cells }) => ({ title: armLabel(arm), cells })),
    };
  });
}

const ofArm = (records: readonly QuestionRecord[], arm: EvalArm) => records.filter((record) => record.arm === arm.id);

function spreadOf(records: readonly QuestionRecord[]): [number, number, number, number, number] | null {
  const values = valuesOf(countedIn(records), ({ ttftMs }) => ttftMs);
  if (values.length === 0) return null;
  const [least = 0, lower = 0, median = 0, upper = 0, most = 0] = SPREAD.map((share) => quantile(values, share) ?? 0);
  return [least, lower, median, upper, most];
}

const BASE = "base";

/** The baseline is grey, all else in the page's one accent. */
function rowStyle({ policy }: EvalArm): string {
  return policy === "readme" ? BASE : "accent";
}

/** Colour and dashes by policy and budget, so that they mean the same in all panels as far as they can. */
function policyStyles(arms: readonly EvalArm[]): ReadonlyMap<string, number> {
  const keys = new Set(arms.filter(({ policy }) => policy !== "readme").map(policyKey));
  return new Map([...keys].map((key, at) => [key, at % LINE_STYLES]));
}

const policyKey = ({ policy, ...budget }: EvalArm) => [policy, ...budgetLabel(budget)].join(" ");

/** The style of each line of one panel: the policy's, or where that is taken (by another retention) the next that is free. */
function panelStyles(arms: readonly EvalArm[], familiar: ReadonlyMap<string, number>): ReadonlyMap<EvalArm, string> {
  const taken = new Set<number>();
  return new Map(
    arms.map((arm) => {
      if (arm.policy === "readme") return [arm, BASE];
      let style = familiar.get(policyKey(arm)) ?? 0;
      for (let tries = 0; taken.has(style) && tries < LINE_STYLES; tries++) style = (style + 1) % LINE_STYLES;
      taken.add(style);
      return [arm, `s${style}`];
    }),
  );
}

function legend(styles: ReadonlyMap<EvalArm, string>): Markup {
  return markup`<ul class="legend">${[...styles].map(
    ([arm, style]) =>
      markup`<li><svg class="key" viewBox="0 0 28 8" aria-hidden="true"><line class="line ${style}" x1="1" x2="27" y1="4" y2="4"/></svg>${armLabel(arm)}</li>
`,
  )}</ul>
`;
}

const COLUMNS = ["Points against the baseline", "TTFT p50 ms", "Hit ratio", "Uncached"];

/** Answers beside what they cost: one line per arm. */
export function tradeTable(content: ReportContent): ReportTable {
  const groups = armGroups(content.summaries, (summary) => ({
    title: armLabel(summary.arm),
    cells: tradeCells(content, summary),
  }));
  const prices = content.prices.map(({ provider, model }) => `${provider} ${model}, 1,000 prompts`);
  return {
    caption: "Answers beside what they cost",
    rowsAre: "Prompts built by",
    columns: [...COLUMNS, ...prices],
    groups,
  };
}

function tradeCells(content: ReportContent, { arm, overall }: ArmSummary): Cell[] {
  const change = changeOf(content, arm.id);
  const { ttftP50, hitRatio, uncachedTokens, costs } = overall;
  return [
    change === "baseline" ? { text: "baseline" } : change && { text: withInterval(change, signed(points)) },
    ttftP50 && { text: milliseconds(ttftP50.value) },
    hitRatio && { text: percent(hitRatio.value) },
    uncachedTokens && { text: tokens(uncachedTokens.value) },
    ...costs.map(({ prompts }): Cell => prompts && { text: dollars(prompts.value) }),
  ];
}

/** How an arm's answers differ from its baseline's; null where that was not measured. */
function changeOf({ quality }: ReportContent, arm: string): Interval | "baseline" | null {
  if (quality === null) return null;
  const change = quality.arms.find((one) => one.arm.id === arm);
  return change === undefined ? "baseline" : (change.found?.difference ?? null);
}

/** Answers against uncached tokens and against money, in groups of arms with one baseline; nothing where answers were not measured. */
export function tradeFigure(content: ReportContent): Markup | null {
  if (content.quality === null) return null;
  const [price] = content.prices;
  const measures = [
    {
      id: "uncached",
      name: "uncached tokens a question",
      of: ({ overall }: ArmSummary) => overall.uncachedTokens?.value ?? null,
      write: tokens,
    },
    ...(price === undefined
      ? []
      : [
          {
            id: "money",
            name: `1,000 prompts at ${price.provider} ${price.model}`,
            of: ({ overall }: ArmSummary) => overall.costs[0]?.prompts?.value ?? null,
            write: dollars,
          },
        ]),
  ];
  const panels = groupArms(content.summaries, ({ arm }) => arm).flatMap(({ title, arms }, index) =>
    measures.map(({ id, name, of, write }): Panel => {
      const drawn = arms.flatMap((summary, at) => {
        const [change, x] = [changeOf(content, summary.arm.id), of(summary)];
        if (change === null || x === null) return [];
        const { value, low, high } = change === "baseline" ? { value: 0, low: 0, high: 0 } : change;
        const style = summary.arm.policy === "readme" ? "base" : "accent";
        return [{ number: at + 1, x, y: value, low, high, style, label: armLabel(summary.arm), cost: write(x) }];
      });
      const described = drawn.map((point) => `${point.label}: ${signed(points)(point.y)} points, ${point.cost}`);
      const text = {
        id: `trade-${id}-${index}`,
        title: `Answers against ${name}, ${title}`,
        description: described.join("; "),
      };
      return {
        title: `${title}: ${name}`,
        chart:
          drawn.length < 2
            ? null
            : markup`${numbered(drawn)}${scatterChart(text, { xTitle: name, xOf: write, yOf: signed(points) }, drawn)}`,
        rows: drawn.map((point) => ({
          title: point.label,
          cells: [
            { text: withInterval({ value: point.y, low: point.low, high: point.high }, signed(points)) },
            { text: point.cost },
          ],
        })),
      };
    }),
  );
  return figure(
    "Answers against what they cost.",
    "Points against the baseline with 95 % intervals, over uncached tokens and money; up and left is better. The line joins what nothing else beats in both, by the estimates: where intervals overlap, it may be another.",
    { caption: "Answers and cost", columns: ["Points", "Cost"] },
    panels,
  );
}

function numbered(drawn: readonly { readonly number: number; readonly label: string }[]): Markup {
  return markup`<ol class="numbers">${drawn.map(
    ({ number, label }) => markup`<li value="${number}">${label}</li>
`,
  )}</ol>
`;
}

/** The cached share of prompts around one place in their conversations. */
export interface TurnShare {
  /** The how-manieth question of a conversation, from 1. */
  readonly turn: number;
  readonly share: number;
}

/** Most points of a line: more are not seen. */
const MOST_POINTS = 120;

/**
 * How the cached share of an arm's prompts develops over a conversation's questions: at each turn, cached ÷ prompt tokens of all
 * conversations' prompts up to `window` ÷ 2 turns away. Warm-ups, failures and unmeasured prompts take a turn and count in none.
 */
export function cachedOverTurns(records: readonly QuestionRecord[], window: number): TurnShare[] {
  const sums: { cached: number; prompt: number }[] = [];
  for (const asked of groupBy(records, ({ conversation }) => conversation).values()) {
    const inOrder = asked.toSorted((a, b) => a.question - b.question);
    for (const [turn, record] of inOrder.entries()) {
      const sum = sums[turn] ?? { cached: 0, prompt: 0 };
      sums[turn] = sum;
      if (!isAnswered(record) || record.isWarmUp) continue;
      if (record.promptTokens === null || record.cachedTokens === null) continue;
      sum.cached += record.cachedTokens;
      sum.prompt += record.promptTokens;
    }
  }
  const step = Math.max(1, Math.ceil(sums.length / MOST_POINTS));
  const reach = Math.floor(window / 2);
  return sums.flatMap((_, turn) => {
    if (turn % step !== 0 && turn !== sums.length - 1) return [];
    const near = sums.slice(Math.max(0, turn - reach), turn + reach + 1);
    const prompt = near.reduce((total, sum) => total + sum.prompt, 0);
    const cached = near.reduce((total, sum) => total + sum.cached, 0);
    return prompt === 0 ? [] : [{ turn: turn + 1, share: cached / prompt }];
  });
}
