import { h, html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { WireHealth, WireSummary, WireSums } from "./api.js";
import { getJson } from "./api.js";
import { type ChartParts, TimeChart } from "./chart.js";
import { summed, windowLinks } from "./filters.js";
import { counted, duration, moment, money, percent, short, whole } from "./format.js";
import { alarm, type Column, empty, figuresTable, linkTo, loading, panel, usePolling } from "./view.js";

type WireCache = NonNullable<WireSummary["cache"]>;

/** The figures are read again this often; those of longer windows hardly change. */
const RELOAD_MS = { hour: 3_000, day: 15_000, month: 60_000 } as const;

/** How much was cached, now and over time. */
export const nowView = loading(
  (query, signal) =>
    Promise.all([
      getJson<WireSummary>("/usage/summary", summed(query), signal),
      // A service that is stopping has other news.
      getJson<WireHealth>("/healthz", {}, signal).catch(() => null),
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
      ${summary.cache !== null && sharedCache(summary.cache, summary.misses)}
      ${breakdown(summary, query)}`;
  },
);

function filterTag(query: URLSearchParams): VNode | null {
  const { window, model } = summed(query);
  if (model === null) return null;
  return html`<a class="tag" href=${linkTo("", { window })} title="Remove this filter">model: ${model} ✕</a>`;
}

/** Reports of fewer prompts say little. */
const FEW = 20;

function tiles({ total, window, has_prices: hasPrices }: WireSummary): VNode {
  const { first_token_ms: ttft, below_minimum: tooShort, expired } = total;
  const apart = tooShort.prompts + expired.prompts;
  return html`<dl class="tiles">
    ${tile("Cached share", percent(total.cached_share ?? total.expected_share), sharesOf(total))}
    ${tile("Tokens computed", short(total.uncached_tokens), `of ${short(total.prompt_tokens)} sent`)}
    ${tile("Missed", short(total.missed_tokens), html`<a href=${linkTo("misses")}>why</a>`)}
    ${tile("First token", duration(ttft?.p50), ttft === null ? "not measured yet" : `p95 ${duration(ttft.p95)}, of ${counted(ttft.prompts, "prompt")}`)}
    ${
      hasPrices
        ? tile("Saved", money(total.saved_money), "net of cache writes, by your prices")
        : tile("Prompts", whole(total.prompts), `of the last ${window}`)
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

/** Whose word a share is, and of how many prompts. */
function sharesOf({
  prompts,
  reported_prompts: reported,
  cached_share: cached,
  expected_share: expected,
}: WireSums): string {
  if (expected === null) return "not known: all prompts are kept apart";
  if (cached === null) return reported === 0 ? "expected; the engine did not report" : "expected; no report counts";
  const few = reported < FEW ? ", few" : "";
  return `by the engine, which reported ${whole(reported)} of ${counted(prompts, "prompt")}${few}; expected of the same: ${percent(expected)}`;
}

/** Who says how much the cache holds. */
const CAPACITY_FROM = {
  setting: "tokens of all users, as MEMPREFIX_CACHE_SIZE says",
  engine: "tokens of all users, as the engine says",
  reports: "tokens of all users, learned from reports",
} as const;

/** What is known of the engine's cache, which all prompts share. */
function sharedCache(
  { capacity_tokens: capacity, capacity_from: from, share_tokens: share }: WireCache,
  misses: WireSummary["misses"],
): VNode {
  const evicted = misses.find(({ cause }) => cause === "evicted");
  const { tokens = 0, prompts = 0, share: evictedShare = 0 } = evicted ?? {};
  return panel(
    "How much does the engine's cache hold?",
    null,
    html`<dl class="tiles">
      ${tile("Holds", short(capacity), from === null ? "not known: nothing that was expected has been missed yet" : CAPACITY_FROM[from])}
      ${tile(
        "A conversation's share",
        short(share),
        share === null
          ? "not known either"
          : "tokens of it for the newest prompt's conversation; a longer one may be gone at its next turn",
      )}
      ${tile(
        "Evicted",
        short(tokens),
        tokens === 0
          ? "nothing missed because of evictions"
          : html`tokens in ${counted(prompts, "prompt")}, ${percent(evictedShare)} of what missed: <a href=${linkTo("requests", { cause: "evicted" })}>show them</a>`,
      )}
    </dl>`,
  );
}

function chartsOf({ points, has_prices: hasPrices }: WireSummary): readonly ChartParts[] {
  const times = points.map(({ at }) => at);
  // The newest step has only begun: without prompts it says nothing yet.
  const of = (value: (point: WireSummary["points"][number]) => number | null) =>
    points.map((point, at) => (at === points.length - 1 && point.prompts === 0 ? null : value(point)));
  return [
    {
      times,
      title: "Cached share",
      most: 1,
      format: percent,
      series: [
        { name: "By the engine", colour: "--cached", kind: "line", values: of((point) => point.cached_share) },
        { name: "Expected", colour: "--expected", kind: "dashed", values: of((point) => point.expected_share) },
      ],
    },
    {
      times,
      title: "Prompt tokens",
      format: short,
      isStacked: true,
      series: [
        { name: "Computed", colour: "--fresh", kind: "area", values: of((point) => point.uncached_tokens) },
        {
          name: "Cached",
          colour: "--cached",
          kind: "area",
          values: of((point) => Math.max(0, point.prompt_tokens - point.uncached_tokens)),
        },
      ],
    },
    {
      times,
      title: "Time to the first token",
      format: duration,
      series: [
        { name: "p50", colour: "--cached", kind: "line", values: of((point) => point.first_token_ms?.p50 ?? null) },
        { name: "p95", colour: "--carried", kind: "dashed", values: of((point) => point.first_token_ms?.p95 ?? null) },
      ],
    },
    hasPrices
      ? {
          times,
          title: "Saved, net of cache writes",
          format: money,
          series: [{ name: "Saved", colour: "--cached", kind: "line", values: of((point) => point.saved_money) }],
        }
      : {
          times,
          title: "Missed tokens",
          format: short,
          series: [{ name: "Missed", colour: "--fresh", kind: "area", values: of((point) => point.missed_tokens) }],
        },
  ];
}

function breakdown({ by_model: models, has_prices: hasPrices }: WireSummary, query: URLSearchParams): VNode {
  type Row = WireSummary["by_model"][number];
  const { window } = summed(query);
  const figure = (title: string, cell: (row: Row) => string): Column<Row> => ({ title, isNumber: true, cell });
  const columns: readonly Column<Row>[] = [
    {
      title: "Model",
      isName: true,
      cell: ({ model }) => html`<a class="id" href=${linkTo("", { window, model })}>${model}</a>`,
    },
    figure("Prompts", ({ prompts }) => whole(prompts)),
    figure("Prompt tokens", (row) => short(row.prompt_tokens)),
    figure("Computed", (row) => short(row.uncached_tokens)),
    figure("Missed", (row) => short(row.missed_tokens)),
    figure("Cached share", (row) => percent(row.cached_share)),
    figure("Expected", (row) => percent(row.expected_share)),
    figure("First token p50", (row) => duration(row.first_token_ms?.p50)),
    ...(hasPrices ? [figure("Saved", (row) => money(row.saved_money))] : []),
  ];
  const title = "By model";
  return panel(
    title,
    models.length === 0 ? "Nothing yet." : null,
    figuresTable({ caption: title, columns, rows: models }),
  );
}
