import { h, html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { UsageFigures, UsageSummary } from "../client/index.js";
import { type ChartParts, TimeChart } from "./chart.js";
import { summed, windowLinks } from "./filters.js";
import { counted, duration, moment, money, percent, short, whole } from "./format.js";
import { service } from "./service.js";
import { alarm, type Column, empty, figuresTable, linkTo, loading, panel, usePolling } from "./view.js";

/** Reload intervals. Figures of longer windows hardly change. */
const RELOAD_MS = { hour: 3_000, day: 15_000, month: 60_000 } as const;

/** The cached share, now and over time. */
export const nowView = loading(
  (query, signal) =>
    Promise.all([
      service.usageSummary(summed(query), { signal }),
      // A failing health check must not hide the figures.
      service.health({ signal }).catch(() => null),
    ]),
  ({ data: [summary, health], query, reload }) => {
    usePolling(RELOAD_MS[summed(query).window], reload);
    const charts = useMemo(() => chartsOf(summary), [summary]);
    const sample = html`<a href=${linkTo("try")}>try it with a sample</a>`;
    const nothing = html`<p>
      Send one to <code>/compose</code> or through <code>/v1</code>, and it appears here. Or ${sample}.
    </p>`;
    return html`
      <div class="row spread">
        <div><h1>How much of what is sent is cached?</h1>${filterTag(query)}</div>
        ${windowLinks("", query)}
      </div>
      ${health?.degraded?.map(({ part, reason, since }) =>
        alarm(
          `Degraded: ${part.replaceAll("_", " ")}`,
          `${reason}, since ${moment(since)}. The log says what it answered.`,
        ),
      )}
      ${
        summary.total.prompts === 0
          ? html`<div class="panel">${empty("No prompts in this window yet", nothing)}</div>`
          : [tiles(summary), html`<div class="charts">${charts.map((parts) => h(TimeChart, parts))}</div>`]
      }
      ${breakdown(summary, query)}`;
  },
);

function filterTag(query: URLSearchParams): VNode | null {
  const { window, model } = summed(query);
  if (model === undefined) return null;
  return html`<a class="tag" href=${linkTo("", { window })} title="Remove this filter">model: ${model} ✕</a>`;
}

function tiles({ total, writes, window, hasPrices, cache }: UsageSummary): VNode {
  const { firstTokenMs: ttft, belowMinimum: tooShort, expired } = total;
  const apart = tooShort.prompts + expired.prompts;
  return html`<dl class="tiles">
    ${tile("Cached share", percent(total.cachedShare ?? total.expectedShare), sharesOf(total))}
    ${tile("Tokens computed", short(total.uncachedTokens), `of ${short(total.promptTokens)} sent`)}
    ${savedTile(total.byHand)}
    ${tile("Missed", short(total.missedTokens), html`<a href=${linkTo("misses")}>why</a>`)}
    ${tile("First token", duration(ttft?.p50), ttft === null ? "not measured yet" : `p95 ${duration(ttft.p95)}, of ${counted(ttft.prompts, "prompt")}`)}
    ${
      hasPrices
        ? tile(
            "Saved by the cache",
            money((total.savedMoney ?? 0) + (writes.savedMoney ?? 0)),
            "net of cache writes, by your prices",
          )
        : tile("Prompts", whole(total.prompts), `of the last ${window}`)
    }
    ${cache?.capacityFrom != null && tile("The engine's cache holds", short(cache.capacityTokens), CAPACITY_FROM[cache.capacityFrom])}
    ${
      writes.prompts > 0 &&
      tile(
        "Mem0's own calls",
        short(writes.uncachedTokens),
        `computed of ${short(writes.promptTokens)} in ${counted(writes.prompts, "call")}; cached: ${percent(writes.cachedShare)}`,
      )
    }
    ${
      apart > 0 &&
      tile(
        "Kept apart",
        whole(apart),
        `${whole(tooShort.prompts)} too short to cache, ${whole(expired.prompts)} expired: in no share`,
      )
    }
  </dl>`;
}

function tile(title: string, value: string, sub: ComponentChildren): VNode {
  return html`<div class="tile">
    <dt>${title}</dt><dd><span class="value">${value}</span><span class="sub">${sub}</span></dd>
  </div>`;
}

/** Null where no prompt was compared. */
function savedTile({
  uncachedTokens: computed,
  inMessageTokens,
  inSystemTokens,
}: UsageFigures["byHand"]): VNode | null {
  if (inMessageTokens === 0) return null;
  const saved = (byHand: number) => percent(1 - computed / byHand);
  return tile(
    "Saved",
    saved(inMessageTokens),
    `of ${short(inMessageTokens)} tokens with the memories in the last message; ${saved(inSystemTokens)} against Mem0's README`,
  );
}

/** Who reported a share, and of how many prompts. */
function sharesOf({
  prompts,
  reportedPrompts: reported,
  cachedShare: cached,
  expectedShare: expected,
}: UsageFigures): string {
  if (expected === null) return "not known: all prompts are kept apart";
  if (cached === null) return reported === 0 ? "expected; the engine did not report" : "expected; no report counts";
  return `by the engine, which reported ${whole(reported)} of ${counted(prompts, "prompt")}; expected of the same: ${percent(expected)}`;
}

const CAPACITY_FROM = {
  setting: "tokens of all users, as MEMPREFIX_CACHE_SIZE says",
  engine: "tokens of all users, as the engine says",
  reports: "tokens of all users, learned from reports",
} as const;

function chartsOf({ points, hasPrices }: UsageSummary): readonly ChartParts[] {
  const times = points.map(({ at }) => at);
  // The newest step has only begun: without prompts it says nothing yet.
  const of = (value: (point: UsageSummary["points"][number]) => number | null) =>
    points.map((point, at) => (at === points.length - 1 && point.prompts === 0 ? null : value(point)));
  return [
    {
      times,
      title: "Cached share",
      most: 1,
      format: percent,
      series: [
        { name: "By the engine", colour: "--cached", kind: "line", values: of((point) => point.cachedShare) },
        { name: "Expected", colour: "--expected", kind: "dashed", values: of((point) => point.expectedShare) },
      ],
    },
    {
      times,
      title: "Prompt tokens",
      format: short,
      isStacked: true,
      series: [
        { name: "Computed", colour: "--fresh", kind: "area", values: of((point) => point.uncachedTokens) },
        {
          name: "Cached",
          colour: "--cached",
          kind: "area",
          values: of((point) => Math.max(0, point.promptTokens - point.uncachedTokens)),
        },
      ],
    },
    {
      times,
      title: "Time to the first token",
      format: duration,
      series: [
        { name: "p50", colour: "--cached", kind: "line", values: of((point) => point.firstTokenMs?.p50 ?? null) },
        { name: "p95", colour: "--carried", kind: "dashed", values: of((point) => point.firstTokenMs?.p95 ?? null) },
      ],
    },
    hasPrices
      ? {
          times,
          title: "Saved, net of cache writes",
          format: money,
          series: [{ name: "Saved", colour: "--cached", kind: "line", values: of((point) => point.savedMoney) }],
        }
      : {
          times,
          title: "Missed tokens",
          format: short,
          series: [{ name: "Missed", colour: "--fresh", kind: "area", values: of((point) => point.missedTokens) }],
        },
  ];
}

function breakdown({ byModel: models, hasPrices }: UsageSummary, query: URLSearchParams): VNode {
  type Row = UsageSummary["byModel"][number];
  const { window } = summed(query);
  const figure = (title: string, cell: (row: Row) => string): Column<Row> => ({ title, isNumber: true, cell });
  const columns: readonly Column<Row>[] = [
    {
      title: "Model",
      isName: true,
      cell: ({ model }) => html`<a class="id" href=${linkTo("", { window, model })}>${model}</a>`,
    },
    figure("Prompts", ({ prompts }) => whole(prompts)),
    figure("Prompt tokens", (row) => short(row.promptTokens)),
    figure("Computed", (row) => short(row.uncachedTokens)),
    figure("Missed", (row) => short(row.missedTokens)),
    figure("Cached share", (row) => percent(row.cachedShare)),
    figure("Expected", (row) => percent(row.expectedShare)),
    figure("First token p50", (row) => duration(row.firstTokenMs?.p50)),
    ...(hasPrices ? [figure("Saved", (row) => money(row.savedMoney))] : []),
  ];
  const title = "By model";
  return panel(
    title,
    models.length === 0 ? "Nothing yet." : null,
    figuresTable({ caption: title, columns, rows: models }),
  );
}
