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
  const numbers = placedNumbers(points.map((point) => ({ number: point.number, x: x(point.x), y: y(point.y) })));
  const drawn = points.map(
    (
      point,
    ) => markup`<line class="whisker ${point.style}" x1="${coordinate(x(point.x))}" x2="${coordinate(x(point.x))}" y1="${coordinate(y(point.low))}" y2="${coordinate(y(point.high))}"/>
<circle class="bar ${point.style}" cx="${coordinate(x(point.x))}" cy="${coordinate(y(point.y))}" r="4"/>
`,
  );
  const title = markup`<text class="tick" x="${CHART_WIDTH - ROOM.right}" y="${ROOM.height - 4}" text-anchor="end">${xTitle}</text>
<text class="tick" x="2" y="${ROOM.height - 4}">points, over</text>
`;
  return svgChart(text, ROOM.height, [
    ...rows,
    ...marks,
    markup`<polyline class="line front" points="${front}"/>
`,
    ...drawn,
    ...numbers,
    title,
  ]);
}

/** Where a number may stand beside its point: from its middle, in units of the chart, the nearest first. */
const PLACES = [
  [10, -9],
  [10, 9],
  [-10, -9],
  [-10, 9],
  ...[20, 32, 44, 56].flatMap((far) => [
    [10, -far],
    [-10, -far],
    [10, far],
    [-10, far],
    [far, 0],
    [-far, 0],
  ]),
] as const;
/** Room of a digit, and of a line, at the style sheet's size. */
const [DIGIT, LINE] = [8, 12] as const;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/**
 * The number of every point where it covers neither another number nor another point, and within the chart, as far as there is such a place; a line
 * leads to those that stand far off.
 */
function placedNumbers(
  points: readonly { readonly number: number; readonly x: number; readonly y: number }[],
): Markup[] {
  const placed: Box[] = [];
  return points.map(({ number, x, y }, at) => {
    const width = DIGIT * String(number).length;
    const others = points.filter((_, other) => other !== at).map((point) => ({ x: point.x, y: point.y, width: 6 }));
    const boxes = PLACES.map(([right, down]): Box => ({ x: x + right, y: y + down, width }));
    const isFree = (box: Box) => isInside(box) && [...placed, ...others].every((other) => !cover(box, other));
    const box = boxes.find(isFree) ?? boxes.find((one) => isInside(one) && placed.every((other) => !cover(one, other)));
    const { x: left, y: top } = box ?? { x: x + 10, y: y - 9 };
    placed.push({ x: left, y: top, width });
    const isFar = Math.hypot(left - x, top - y) > 16;
    const lead = isFar
      ? markup`<line class="grid" x1="${coordinate(x)}" x2="${coordinate(left)}" y1="${coordinate(y)}" y2="${coordinate(top)}"/>
`
      : null;
    return markup`${lead}<text class="label number" x="${coordinate(left)}" y="${coordinate(top + 4)}" text-anchor="middle">${number}</text>
`;
  });
}

function isInside({ x, y, width }: Box): boolean {
  return x - width / 2 > ROOM.left && x + width / 2 < CHART_WIDTH && y > LINE / 2 && y < ROOM.height - ROOM.bottom - 2;
}

function cover(a: Box, b: Box): boolean {
  return Math.abs(a.x - b.x) < (a.width + b.width) / 2 + 1 && Math.abs(a.y - b.y) < LINE;
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
