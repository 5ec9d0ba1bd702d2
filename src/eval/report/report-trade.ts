import { type ArmSummary, armLabel, groupArms } from "../measures/arm-summary.js";
import type { Interval } from "../measures/bootstrap.js";
import { dollars, milliseconds, percent, points, signed, tokens, withInterval } from "../measures/figures.js";
import { type Markup, markup } from "./html.js";
import { figure, type Panel } from "./report-charts.js";
import type { ReportContent } from "./report-content.js";
import { armGroups, type Cell, type ReportTable } from "./report-table.js";
import { scatterChart } from "./scatter-chart.js";

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
    { caption: "Answers and cost", rowsAre: "Prompts built by", columns: ["Points", "Cost"] },
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
