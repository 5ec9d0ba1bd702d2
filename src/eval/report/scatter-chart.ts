import { largest, smallest } from "../../core/text/lists.js";
import { type Markup, markup } from "./html.js";
import { axisTicks, CHART_WIDTH, type ChartText, coordinate, svgChart } from "./svg-charts.js";

/** One numbered point, with the interval of its height. */
export interface ScatterPoint {
  /** What the legend names it by. */
  readonly number: number;
  readonly x: number;
  readonly y: number;
  readonly low: number;
  readonly high: number;
  /** Class of the style sheet. */
  readonly style: string;
}

/** Height, and room around the axes. */
const ROOM = { height: 240, left: 42, right: 12, top: 12, bottom: 34 } as const;

/** Points over amounts from 0, with a line at 0 and one through those that no other beats in both. */
export function scatterChart(
  text: ChartText,
  {
    xTitle,
    xOf,
    yOf,
  }: { readonly xTitle: string; readonly xOf: (x: number) => string; readonly yOf: (y: number) => string },
  points: readonly ScatterPoint[],
): Markup {
  const right = largest(
    points.map((point) => point.x),
    0,
  );
  const [bottom, top] = [
    smallest(
      points.map(({ low }) => low),
      0,
    ),
    largest(
      points.map(({ high }) => high),
      0,
    ),
  ];
  const height = top - bottom === 0 ? 1 : top - bottom;
  const x = (value: number) =>
    ROOM.left + (right === 0 ? 0 : value / right) * (CHART_WIDTH - ROOM.left - ROOM.right - 8);
  const y = (value: number) =>
    ROOM.height - ROOM.bottom - ((value - bottom) / height) * (ROOM.height - ROOM.top - ROOM.bottom);
  const floor = ROOM.height - ROOM.bottom;
  const rows = [...new Set([bottom, 0, top])].map(
    (
      value,
    ) => markup`<line class="grid" x1="${ROOM.left}" x2="${CHART_WIDTH - ROOM.right}" y1="${coordinate(y(value))}" y2="${coordinate(y(value))}"/>
<text class="tick" x="${ROOM.left - 6}" y="${coordinate(y(value) + 3.5)}" text-anchor="end">${value === 0 ? "0" : yOf(value)}</text>
`,
  );
  const marks = axisTicks(right).map(
    (
      value,
    ) => markup`<text class="tick" x="${coordinate(x(value))}" y="${floor + 14}" text-anchor="${value === 0 ? "start" : "middle"}">${value === 0 ? "0" : xOf(value)}</text>
`,
  );
  const front = unbeaten(points)
    .map((point) => `${coordinate(x(point.x))},${coordinate(y(point.y))}`)
    .join(" ");
  const drawn = points.map(
    (
      point,
    ) => markup`<line class="whisker ${point.style}" x1="${coordinate(x(point.x))}" x2="${coordinate(x(point.x))}" y1="${coordinate(y(point.low))}" y2="${coordinate(y(point.high))}"/>
<circle class="bar ${point.style}" cx="${coordinate(x(point.x))}" cy="${coordinate(y(point.y))}" r="4"/>
<text class="label" x="${coordinate(x(point.x) + 6)}" y="${coordinate(y(point.y) - 5)}">${point.number}</text>
`,
  );
  const title = markup`<text class="tick" x="${CHART_WIDTH - ROOM.right}" y="${ROOM.height - 4}" text-anchor="end">${xTitle}</text>
<text class="tick" x="2" y="${ROOM.height - 4}">points, over</text>
`;
  return svgChart(text, ROOM.height, [
    ...rows,
    ...marks,
    markup`<polyline class="line base front" points="${front}"/>
`,
    ...drawn,
    title,
  ]);
}

/** Points that no other is as high as at less, or higher than at as much, from the left: the Pareto front of the estimates. */
export function unbeaten<P extends { readonly x: number; readonly y: number }>(points: readonly P[]): P[] {
  return points
    .filter((point) => !points.some((other) => beats(other, point)))
    .toSorted((a, b) => a.x - b.x || a.y - b.y);
}

function beats(other: { readonly x: number; readonly y: number }, point: { readonly x: number; readonly y: number }) {
  return other.x <= point.x && other.y >= point.y && (other.x < point.x || other.y > point.y);
}
