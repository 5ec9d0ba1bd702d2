import { largest, smallest } from "../../core/text/collections.js";
import { type Markup, markup } from "./html.js";

/** What a chart is called and what it says, for those who do not see it. */
export interface ChartText {
  /** Unique on the page; our own, safe in an attribute. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
}

/** Units are those of a narrow phone's pixels, so that text keeps its size there; wider screens show more charts side by side. */
const CHART_WIDTH = 344;

/** A chart that scales with its column. */
function svgChart({ id, title, description }: ChartText, height: number, body: readonly Markup[]): Markup {
  return markup`<svg viewBox="0 0 ${CHART_WIDTH} ${height}" role="img" aria-labelledby="${id}-t ${id}-d">
<title id="${id}-t">${title}</title>
<desc id="${id}-d">${description}</desc>
${body}</svg>
`;
}

/** A coordinate: a tenth of a unit is finer than anybody sees. */
function coordinate(value: number): string {
  return (Math.round(value * 10) / 10).toString();
}

/** A line from one point to another. */
function line(style: string, [x1, y1]: Point, [x2, y2]: Point): Markup {
  return markup`<line class="${style}" x1="${coordinate(x1)}" x2="${coordinate(x2)}" y1="${coordinate(y1)}" y2="${coordinate(y2)}"/>
`;
}

/** Text that begins, ends or has its middle at a point. */
function text(style: string, [x, y]: Point, anchor: "start" | "middle" | "end", said: string | number): Markup {
  return markup`<text class="${style}" x="${coordinate(x)}" y="${coordinate(y)}" text-anchor="${anchor}">${said}</text>
`;
}

type Point = readonly [x: number, y: number];

/** Round figures from 0 on that mark an axis up to `max`, four to six of them; for nothing, only 0. */
function axisTicks(max: number): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0];
  const power = 10 ** Math.floor(Math.log10(max / 4));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power * 5 >= max) ?? 10) * power;
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, index) =>
    Number((index * step).toPrecision(12)),
  );
}

/** One line: shares from 0 to 1 over x. */
export interface Line {
  /** Class of the style sheet that gives colour and dashes. */
  readonly style: string;
  readonly points: readonly { readonly x: number; readonly share: number }[];
}

/** Height of a line chart, and room around its axes. */
const LINES = { height: 210, left: 42, right: 8, top: 10, bottom: 34 } as const;
const SHARES = [0, 0.25, 0.5, 0.75, 1];

/** Shares over a count that begins at 1, as lines. */
export function shareChart(about: ChartText, xTitle: string, lines: readonly Line[]): Markup {
  const { height, left, right, top, bottom } = LINES;
  const last = largest(
    lines.flatMap(({ points }) => points.map(({ x }) => x)),
    1,
  );
  const end = CHART_WIDTH - right;
  const x = (value: number) => left + (value / last) * (end - left);
  const y = (share: number) => height - bottom - share * (height - top - bottom);
  return svgChart(about, height, [
    ...SHARES.flatMap((share) => [
      line("grid", [left, y(share)], [end, y(share)]),
      text("tick", [left - 6, y(share) + 3.5], "end", `${100 * share} %`),
    ]),
    ...axisTicks(last).map((value) => text("tick", [x(value), height - bottom + 14], "middle", value)),
    ...lines
      .filter(({ points }) => points.length > 0)
      .map(({ style, points }) =>
        polyline(
          style,
          points.map((point) => [x(point.x), y(point.share)]),
        ),
      ),
    text("tick", [end, height - 4], "end", xTitle),
  ]);
}

function polyline(style: string, points: readonly Point[]): Markup {
  return markup`<polyline class="line ${style}" points="${points.map((point) => point.map(coordinate).join(",")).join(" ")}"/>
`;
}

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
  /** The figure, or "not measured". */
  readonly note: string;
}

/** Height of a line of a label and of a shape, what is between rows, and room around the rows. */
const ROWS = { line: 15, shape: 12, gap: 13, left: 2, right: 10, top: 4, bottom: 20 } as const;
/** Room of a character at the style sheet's size, in the widest of its typefaces. */
const CHARACTER = 7.3;

/** Rows under each other, each with its label and its figure above, on one axis from 0. A label that is too long for a line gets more. */
export function rowChart(about: ChartText, rows: readonly ChartRow[]): Markup {
  const max = largest(
    rows.map(({ shape }) => (shape === null ? 0 : farEnd(shape))),
    0,
  );
  const end = CHART_WIDTH - ROWS.right;
  const x = (value: number) => ROWS.left + (max === 0 ? 0 : value / max) * (end - ROWS.left);
  let bottom: number = ROWS.top;
  const drawn = rows.map(({ label, style, shape, note }) => {
    const room = end - ROWS.left - CHARACTER * (note.length + 1);
    const lines = labelLines(label, Math.floor(room / CHARACTER));
    const first = bottom + 13;
    const last = first + (lines.length - 1) * ROWS.line;
    bottom = last + 5 + ROWS.shape + ROWS.gap - 3;
    return markup`${lines.map(
      (words, at) => markup`<text class="label" x="${ROWS.left}" y="${first + at * ROWS.line}">${words}</text>
`,
    )}${text(shape === null ? "value none" : "value", [end, last], "end", note)}${shape && drawShape(shape, style, last + 5, x)}`;
  });
  const grid = axisTicks(max).map(
    (value) =>
      markup`${line("grid", [x(value), ROWS.top], [x(value), bottom])}${text("tick", [x(value), bottom + 13], value === 0 ? "start" : "middle", value.toLocaleString("en"))}`,
  );
  return svgChart(about, bottom + ROWS.bottom, [...grid, ...drawn]);
}

/** A label in lines of at most so many characters, broken at spaces; a word longer than that stands by itself. */
function labelLines(label: string, most: number): readonly string[] {
  const lines: string[] = [];
  for (const word of label.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > most) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function farEnd(shape: RowShape): number {
  return shape.kind === "bar" ? shape.value : shape.quantiles[4];
}

function drawShape(shape: RowShape, style: string, top: number, x: (value: number) => number): Markup {
  const bar = (kind: string, from: number, to: number) =>
    markup`<rect class="${kind} ${style}" x="${coordinate(x(from))}" y="${top}" width="${coordinate(Math.max(1, x(to) - x(from)))}" height="${ROWS.shape}" rx="2"/>
`;
  if (shape.kind === "bar") return bar("bar", 0, shape.value);
  const [least, lower, median, upper, most] = shape.quantiles;
  const middle = top + ROWS.shape / 2;
  return markup`${line(`whisker ${style}`, [x(least), middle], [x(most), middle])}${bar("box", lower, upper)}${line("median", [x(median), top - 1], [x(median), top + ROWS.shape + 1])}`;
}

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

/** What a chart's axes are called, and how their values are written. */
export interface Axes {
  readonly xTitle: string;
  readonly xOf: (x: number) => string;
  readonly yOf: (y: number) => string;
}

/** Points over amounts from 0, with a line at 0 and one through those that no other beats in both. */
export function scatterChart(about: ChartText, { xTitle, xOf, yOf }: Axes, points: readonly ScatterPoint[]): Markup {
  const most = largest(
    points.map((point) => point.x),
    0,
  );
  const low = smallest(
    points.map((point) => point.low),
    0,
  );
  const high = largest(
    points.map((point) => point.high),
    0,
  );
  const span = high - low === 0 ? 1 : high - low;
  const { left, height } = ROOM;
  const end = CHART_WIDTH - ROOM.right;
  const floor = height - ROOM.bottom;
  const x = (value: number) => left + (most === 0 ? 0 : value / most) * (end - left - 8);
  const y = (value: number) => floor - ((value - low) / span) * (floor - ROOM.top);
  return svgChart(about, height, [
    ...[...new Set([low, 0, high])].flatMap((value) => [
      line("grid", [left, y(value)], [end, y(value)]),
      text("tick", [left - 6, y(value) + 3.5], "end", value === 0 ? "0" : yOf(value)),
    ]),
    ...axisTicks(most).map((value) =>
      text("tick", [x(value), floor + 14], value === 0 ? "start" : "middle", value === 0 ? "0" : xOf(value)),
    ),
    polyline(
      "front",
      unbeaten(points).map((point) => [x(point.x), y(point.y)]),
    ),
    ...points.map(
      (point) =>
        markup`${line(`whisker ${point.style}`, [x(point.x), y(point.low)], [x(point.x), y(point.high)])}<circle class="bar ${point.style}" cx="${coordinate(x(point.x))}" cy="${coordinate(y(point.y))}" r="4"/>
`,
    ),
    ...placedNumbers(points.map((point) => ({ number: point.number, x: x(point.x), y: y(point.y) }))),
    text("tick", [end, height - 4], "end", xTitle),
    markup`<text class="tick" x="2" y="${height - 4}">points, over</text>
`,
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
    const lead = Math.hypot(left - x, top - y) > 16 ? line("grid", [x, y], [left, top]) : null;
    return markup`${lead}${text("label number", [left, top + 4], "middle", number)}`;
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
