import { type Markup, markup } from "./markup.js";

/** What a chart is called and what it says, for those who do not see it. */
export interface ChartText {
  /** Unique on the page; our own, safe in an attribute. */
  readonly id: string;
  readonly title: string;
  readonly description: string;
}

/** Units are those of a narrow phone's pixels, so that text keeps its size there; wider screens show more charts side by side. */
export const CHART_WIDTH = 344;

/** A chart that scales with its column. */
export function svgChart({ id, title, description }: ChartText, height: number, body: readonly Markup[]): Markup {
  return markup`<svg viewBox="0 0 ${CHART_WIDTH} ${height}" role="img" aria-labelledby="${id}-t ${id}-d">
<title id="${id}-t">${title}</title>
<desc id="${id}-d">${description}</desc>
${body}</svg>
`;
}

/** A coordinate: a tenth of a unit is finer than anybody sees. */
export function at(value: number): string {
  return (Math.round(value * 10) / 10).toString();
}

/** Round figures from 0 on that mark an axis up to `max`, four to six of them; for nothing, only 0. */
export function axisTicks(max: number): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0];
  const power = 10 ** Math.floor(Math.log10(max / 4));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power * 5 >= max) ?? 10) * power;
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, index) =>
    Number((index * step).toPrecision(12)),
  );
}
