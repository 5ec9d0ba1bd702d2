import { largest, smallest } from "../../core/text/lists.js";
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
export function shareChart(text: ChartText, xTitle: string, lines: readonly Line[]): Markup {
  const last = largest(
    lines.flatMap(({ points }) => points.map(({ x }) => x)),
    1,
  );
  const x = (value: number) => LINES.left + (value / last) * (CHART_WIDTH - LINES.left - LINES.right);
  const y = (share: number) => LINES.height - LINES.bottom - share * (LINES.height - LINES.top - LINES.bottom);
  const grid = SHARES.map(
    (
      share,
    ) => markup`<line class="grid" x1="${LINES.left}" x2="${CHART_WIDTH - LINES.right}" y1="${coordinate(y(share))}" y2="${coordinate(y(share))}"/>
<text class="tick" x="${LINES.left - 6}" y="${coordinate(y(share) + 3.5)}" text-anchor="end">${100 * share} %</text>
`,
  );
  const marks = axisTicks(last).map(
    (
      value,
    ) => markup`<text class="tick" x="${coordinate(x(value))}" y="${LINES.height - LINES.bottom + 14}" text-anchor="middle">${value}</text>
`,
  );
  const drawn = lines
    .filter(({ points }) => points.length > 0)
    .map(
      ({ style, points }) =>
        markup`<polyline class="line ${style}" points="${points.map((point) => `${coordinate(x(point.x))},${coordinate(y(point.share))}`).join(" ")}"/>
`,
    );
  const title = markup`<text class="tick" x="${CHART_WIDTH - LINES.right}" y="${LINES.height - 4}" text-anchor="end">${xTitle}</text>
`;
  return svgChart(text, LINES.height, [...grid, ...marks, ...drawn, title]);
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
export function rowChart(text: ChartText, rows: readonly ChartRow[]): Markup {
  const max = largest(
    rows.map(({ shape }) => (shape === null ? 0 : farEnd(shape))),
    0,
  );
  const x = (value: number) => ROWS.left + (max === 0 ? 0 : value / max) * (CHART_WIDTH - ROWS.left - ROWS.right);
  let top: number = ROWS.top;
  const drawn = rows.map(({ label, style, shape, note }) => {
    const room = CHART_WIDTH - ROWS.left - ROWS.right - CHARACTER * (note.length + 1);
    const lines = labelLines(label, Math.floor(room / CHARACTER));
    const first = top + 13;
    const last = first + (lines.length - 1) * ROWS.line;
    top = last + 5 + ROWS.shape + ROWS.gap - 3;
    return markup`${lines.map(
      (line, at) => markup`<text class="label" x="${ROWS.left}" y="${first + at * ROWS.line}">${line}</text>
`,
    )}<text class="${shape === null ? "value none" : "value"}" x="${CHART_WIDTH - ROWS.right}" y="${last}" text-anchor="end">${note}</text>
${shape === null ? null : drawShape(shape, style, last + 5, x)}`;
  });
  const bottom = top;
  const grid = axisTicks(max).map(
    (
      value,
    ) => markup`<line class="grid" x1="${coordinate(x(value))}" x2="${coordinate(x(value))}" y1="${ROWS.top}" y2="${bottom}"/>
<text class="tick" x="${coordinate(x(value))}" y="${bottom + 13}" text-anchor="${value === 0 ? "start" : "middle"}">${value.toLocaleString("en")}</text>
`,
  );
  return svgChart(text, bottom + ROWS.bottom, [...grid, ...drawn]);
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
  const middle = top + ROWS.shape / 2;
  if (shape.kind === "bar") {
    const width = Math.max(1, x(shape.value) - x(0));
    return markup`<rect class="bar ${style}" x="${coordinate(x(0))}" y="${top}" width="${coordinate(width)}" height="${ROWS.shape}" rx="2"/>
`;
  }
  const [least, lower, median, upper, most] = shape.quantiles;
  const width = Math.max(1, x(upper) - x(lower));
  return markup`<line class="whisker ${style}" x1="${coordinate(x(least))}" x2="${coordinate(x(most))}" y1="${middle}" y2="${middle}"/>
<rect class="box ${style}" x="${coordinate(x(lower))}" y="${top}" width="${coordinate(width)}" height="${ROWS.shape}" rx="2"/>
<line class="median" x1="${coordinate(x(median))}" x2="${coordinate(x(median))}" y1="${top - 1}" y2="${top + ROWS.shape + 1}"/>
`;
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
