import { largest } from "../../core/text/lists.js";
import { type Markup, markup } from "./markup.js";
import { at, axisTicks, CHART_WIDTH, type ChartText, svgChart } from "./svg-chart.js";

/** What stands in a row: a bar from 0, or how figures spread, as five quantiles in rising order. */
export type RowShape =
  | { readonly kind: "bar"; readonly value: number }
  | { readonly kind: "spread"; readonly quantiles: readonly [number, number, number, number, number] };

/** One named row; the shape is null where nothing was measured. */
export interface ChartRow {
  readonly label: string;
  /** Class of the style sheet. */
  readonly style: string;
  readonly shape: RowShape | null;
  /** The figure, or that there is none. */
  readonly note: string;
}

const ROW = 40;
const [LEFT, RIGHT, TOP, BOTTOM] = [2, 10, 4, 20];
const THICKNESS = 12;

/** Rows under each other, each with its label and its figure above, on one axis from 0. */
export function rowChart(text: ChartText, rows: readonly ChartRow[]): Markup {
  const max = largest(
    rows.map(({ shape }) => (shape === null ? 0 : farEnd(shape))),
    0,
  );
  const x = (value: number) => LEFT + (max === 0 ? 0 : value / max) * (CHART_WIDTH - LEFT - RIGHT);
  const bottom = TOP + rows.length * ROW;
  const grid = axisTicks(max).map(
    (value) => markup`<line class="grid" x1="${at(x(value))}" x2="${at(x(value))}" y1="${TOP}" y2="${bottom}"/>
<text class="tick" x="${at(x(value))}" y="${bottom + 13}" text-anchor="${value === 0 ? "start" : "middle"}">${value.toLocaleString("en")}</text>
`,
  );
  const drawn = rows.map(({ label, style, shape, note }, index) => {
    const top = TOP + index * ROW;
    return markup`<text class="label" x="${LEFT}" y="${top + 13}">${label}</text>
<text class="${shape === null ? "value none" : "value"}" x="${CHART_WIDTH - RIGHT}" y="${top + 13}" text-anchor="end">${note}</text>
${shape === null ? null : drawShape(shape, style, top + 18, x)}`;
  });
  return svgChart(text, bottom + BOTTOM, [...grid, ...drawn]);
}

function farEnd(shape: RowShape): number {
  return shape.kind === "bar" ? shape.value : shape.quantiles[4];
}

function drawShape(shape: RowShape, style: string, top: number, x: (value: number) => number): Markup {
  const middle = top + THICKNESS / 2;
  if (shape.kind === "bar") {
    const width = Math.max(1, x(shape.value) - x(0));
    return markup`<rect class="bar ${style}" x="${at(x(0))}" y="${top}" width="${at(width)}" height="${THICKNESS}" rx="2"/>
`;
  }
  const [least, lower, median, upper, most] = shape.quantiles;
  const width = Math.max(1, x(upper) - x(lower));
  return markup`<line class="whisker ${style}" x1="${at(x(least))}" x2="${at(x(most))}" y1="${middle}" y2="${middle}"/>
<rect class="box ${style}" x="${at(x(lower))}" y="${top}" width="${at(width)}" height="${THICKNESS}" rx="2"/>
<line class="median" x1="${at(x(median))}" x2="${at(x(median))}" y1="${top - 1}" y2="${top + THICKNESS + 1}"/>
`;
}
