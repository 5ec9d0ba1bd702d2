import { largest } from "../../core/text/lists.js";
import { type Markup, markup } from "./markup.js";
import { at, axisTicks, CHART_WIDTH, type ChartText, svgChart } from "./svg-chart.js";

/** One line: shares from 0 to 1 over x. */
export interface Line {
  /** Class of the style sheet that gives colour and dashes. */
  readonly style: string;
  readonly points: readonly { readonly x: number; readonly share: number }[];
}

const HEIGHT = 210;
const [LEFT, RIGHT, TOP, BOTTOM] = [42, 8, 10, 34];
const SHARES = [0, 0.25, 0.5, 0.75, 1];

/** Shares over a count that begins at 1, as lines. */
export function shareChart(text: ChartText, xTitle: string, lines: readonly Line[]): Markup {
  const last = largest(
    lines.flatMap(({ points }) => points.map(({ x }) => x)),
    1,
  );
  const x = (value: number) => LEFT + (value / last) * (CHART_WIDTH - LEFT - RIGHT);
  const y = (share: number) => HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  const grid = SHARES.map(
    (
      share,
    ) => markup`<line class="grid" x1="${LEFT}" x2="${CHART_WIDTH - RIGHT}" y1="${at(y(share))}" y2="${at(y(share))}"/>
<text class="tick" x="${LEFT - 6}" y="${at(y(share) + 3.5)}" text-anchor="end">${100 * share} %</text>
`,
  );
  const marks = axisTicks(last).map(
    (
      value,
    ) => markup`<text class="tick" x="${at(x(value))}" y="${HEIGHT - BOTTOM + 14}" text-anchor="middle">${value}</text>
`,
  );
  const drawn = lines
    .filter(({ points }) => points.length > 0)
    .map(
      ({ style, points }) =>
        markup`<polyline class="line ${style}" points="${points.map((point) => `${at(x(point.x))},${at(y(point.share))}`).join(" ")}"/>
`,
    );
  const title = markup`<text class="tick" x="${CHART_WIDTH - RIGHT}" y="${HEIGHT - 4}" text-anchor="end">${xTitle}</text>
`;
  return svgChart(text, HEIGHT, [...grid, ...marks, ...drawn, title]);
}
