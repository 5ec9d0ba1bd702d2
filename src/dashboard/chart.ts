import { html } from "htm/preact";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { moment } from "./format.js";

export interface Series {
  readonly name: string;
  /** Custom property that holds its colour. */
  readonly colour: string;
  /** By step; null: unknown, a gap. */
  readonly values: readonly (number | null)[];
  readonly kind: "line" | "dashed" | "area";
}

export interface ChartParts {
  readonly title: string;
  /** Milliseconds since the epoch, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** A value in words, for the axis and beside the pointer. */
  readonly format: (value: number | null) => string;
  /** Least top of the axis; absent: the highest value. */
  readonly most?: number;
  readonly isStacked?: boolean;
}

const HEIGHT = 190;

/** A chart over time. Screen readers get its figures as text. */
export function TimeChart(parts: ChartParts): VNode {
  const { title, series } = parts;
  const plot = useRef<HTMLDivElement>(null);
  const [step, setStep] = useState<number | null>(null);
  useEffect(() => (plot.current === null ? undefined : drawnIn(plot.current, parts, setStep)), [parts]);
  if (series.every(({ values }) => values.every((value) => value === null))) {
    return html`<figure class="chart">
      <figcaption>${title}</figcaption><p class="no-data">Nothing was measured in this window.</p>
    </figure>`;
  }
  return html`<figure class="chart" aria-label="${title}: ${spoken(parts)}">
    <figcaption>${title}</figcaption>${readout(parts, step)}<div class="plot" ref=${plot} aria-hidden="true"></div>
  </figure>`;
}

/** Draws a chart, and again when its size or colours change. Returns what ends that. `onStep`: the step under the pointer. */
function drawnIn(plot: HTMLElement, parts: ChartParts, onStep: (step: number | null) => void): () => void {
  const { times, series, format } = parts;
  const stacked = parts.isStacked ? stackedUp(series) : series.map(({ values }) => [...values]);
  const data: uPlot.AlignedData = [[...times], ...stacked];
  let chart: uPlot | null = null;
  const draw = () => {
    chart?.destroy();
    const axis = {
      stroke: colourOf("--muted"),
      grid: { stroke: colourOf("--line"), width: 1 },
      ticks: { show: false },
    };
    const options: uPlot.Options = {
      width: Math.max(200, plot.clientWidth),
      height: HEIGHT,
      ms: 1,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      // The axis has 0 and `most` unless values lie beyond them.
      scales: { x: { time: true }, y: { range: { min: upTo(0), max: upTo(parts.most ?? 0) } } },
      axes: [
        { ...axis, grid: { show: false }, size: 28, values: (_, ticks) => ticks.map((tick) => dateWords(tick, ticks)) },
        { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => format(tick)) },
      ],
      series: [
        {},
        ...series.map(({ name, colour, kind }, at) => ({
          label: name,
          stroke: colourOf(colour),
          width: kind === "area" ? 1 : 2,
          points: { show: isSparse(stacked[at] ?? []), size: 5 },
          spanGaps: kind !== "area",
          ...(kind === "dashed" ? { dash: [5, 4] } : {}),
          ...(kind === "area" ? { fill: paler(colour) } : {}),
        })),
      ],
      hooks: {
        setCursor: [(self) => onStep(self.cursor.idx ?? null)],
      },
    };
    chart = new uPlot(options, data, plot);
  };
  const sized = new ResizeObserver(() => {
    if (plot.clientWidth === 0) return;
    if (chart === null) draw();
    else chart.setSize({ width: plot.clientWidth, height: HEIGHT });
  });
  sized.observe(plot);
  const ending = new AbortController();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal: ending.signal });
  return () => {
    ending.abort();
    sized.disconnect();
    chart?.destroy();
  };
}

/** An end of an axis: at least a value, and values beyond it with a margin. */
function upTo(soft: number) {
  return { soft, mode: 1, pad: 0.08 } as const;
}

/** A colour, or its custom property, as a canvas takes it. */
function colourOf(colour: string): string {
  const probe = document.createElement("span");
  probe.style.color = colour.startsWith("--") ? `var(${colour})` : colour;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A tick of the time axis: the day where the axis spans more than two, else the time. */
function dateWords(tick: number, ticks: readonly number[]): string {
  const isLong = (ticks.at(-1) ?? 0) - (ticks[0] ?? 0) > 2 * 86_400_000;
  const words = isLong
    ? ({ month: "short", day: "numeric" } as const)
    : ({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const);
  return new Date(tick).toLocaleString(undefined, words);
}

/** A paler, opaque form of a colour, which hides lines below it. */
function paler(name: string): string {
  return colourOf(`color-mix(in srgb, var(${name}) 34%, var(--surface))`);
}

/** Running sums, the first series at the bottom. Drawn from the top, so that lower ones stay visible. */
function stackedUp(series: readonly Series[]): (number | null)[][] {
  return series.map((_, at) =>
    (series[0]?.values ?? []).map((first, step) =>
      first === null ? null : series.slice(at).reduce((all, { values }) => all + (values[step] ?? 0), 0),
    ),
  );
}

/** Whether values have so few neighbours that a line alone would not show them. */
function isSparse(values: readonly (number | null)[]): boolean {
  return values.filter((value) => value !== null).length < 12;
}

/** The values of a step; without one, the newest. */
function readout({ times, series, format }: ChartParts, step: number | null): VNode {
  const at = step ?? Math.max(...series.map(({ values }) => values.findLastIndex((value) => value !== null)));
  const time = times[at];
  const values = series.map(({ name, colour, values }) => {
    const value = format(values[at] ?? null);
    return html`<span class="key" style=${{ "--colour": `var(${colour})` }}>${name} <strong>${value}</strong></span>`;
  });
  return html`<p class="readout">${values}<span class="when">${time !== undefined && moment(time)}</span></p>`;
}

/** The newest figures, for screen readers. */
function spoken({ series, format }: ChartParts): string {
  return series
    .map(({ name, values }) => `${name} ${format(values.findLast((value) => value !== null) ?? null)}`)
    .join(", ");
}
