import { getJson } from "./api.js";
import { timeChart } from "./chart.js";
import { type Child, h } from "./dom.js";
import { figuresTable } from "./figures-table.js";
import { windowLinks, windowOf } from "./filters.js";
import { duration, moment, money, percent, short, whole } from "./format.js";
import { onUsage } from "./live.js";
import { empty, linkTo, panel, showing, type View } from "./view.js";
import type { WireAlerts, WireHealth, WireNote, WireSummary, WireSums } from "./wire.js";

/** What a note is called. */
const NOTES: Readonly<Record<WireNote["kind"], string>> = {
  engine_restart: "engine restart",
  policy_change: "policy change",
  service_start: "memstem started",
  deploy: "deploy",
  alert: "alert",
};

/** Live prompts change the figures: they are read again, but not more often than this; of longer windows, they hardly change. */
const RELOAD_MS = { hour: 3_000, day: 15_000, month: 60_000 } as const;

/** How much was cached, now and over time. */
export const nowView: View = async ({ root, query, signal }) => {
  const window = windowOf(query);
  const filter = { model: query.get("model"), engine: query.get("engine"), layout: query.get("layout") };
  let drawn = new AbortController();
  const load = async (): Promise<readonly Child[]> => {
    const [summary, alerts, health] = await Promise.all([
      getJson<WireSummary>("/usage/summary", { window, ...filter }, signal),
      getJson<WireAlerts>("/usage/alerts", {}, signal),
      // A service that is stopping has other news.
      getJson<WireHealth>("/healthz", {}, signal).catch(() => null),
    ]);
    drawn.abort();
    drawn = new AbortController();
    return contents(summary, alerts, health, query, AbortSignal.any([signal, drawn.signal]));
  };
  await showing(root, signal, load);
  let timer: ReturnType<typeof setTimeout> | undefined;
  signal.addEventListener("abort", () => clearTimeout(timer));
  const again = () => {
    timer = undefined;
    // The pointer may read a value off a chart that would be replaced under it; nobody looks at a hidden page.
    if (document.hidden || root.querySelector(".plot:hover") !== null) later();
    else void refresh(root, signal, load);
  };
  const later = () => {
    timer ??= setTimeout(again, RELOAD_MS[window]);
  };
  onUsage(signal, later);
};

/** Puts new figures in place of the old, if they come; focus stays where it was. */
async function refresh(root: HTMLElement, signal: AbortSignal, load: () => Promise<readonly Child[]>): Promise<void> {
  try {
    const children = await load();
    if (signal.aborted) return;
    const focused = [...root.querySelectorAll("a, button, [tabindex]")].indexOf(document.activeElement ?? root);
    root.replaceChildren(...children.filter((child) => child instanceof Node));
    if (focused >= 0)
      [...root.querySelectorAll<HTMLElement>("a, button, [tabindex]")][focused]?.focus({ preventScroll: true });
  } catch {
    // The old figures stay; the light in the head says that the service is away.
  }
}

function contents(
  summary: WireSummary,
  alerts: WireAlerts,
  health: WireHealth | null,
  query: URLSearchParams,
  signal: AbortSignal,
): readonly Child[] {
  const { total } = summary;
  const filters = ["model", "engine", "layout"].flatMap((name) => {
    const value = query.get(name);
    if (value === null) return [];
    const rest = Object.fromEntries([...query].filter(([other]) => other !== name));
    return [h("a.tag", { href: linkTo([], rest), title: "Remove this filter" }, `${name}: ${value} ✕`)];
  });
  return [
    h("div.row.spread", h("div", h("h1", "Cache, now and over time"), filters), windowLinks([], query)),
    ...failing(health),
    ...firing(alerts),
    total.prompts === 0 ? nothingYet() : null,
    tiles(summary),
    h("div.charts", charts(summary, signal)),
    happened(summary.notes),
    breakdown(summary, query),
  ];
}

function nothingYet(): HTMLElement {
  return h(
    "div.panel",
    empty(
      "No prompts in this window yet",
      h(
        "p",
        "Send one to ",
        h("code", "/compose"),
        " or through ",
        h("code", "/v1"),
        ", and it appears here. Or ",
        h("a", { href: linkTo(["try"]) }, "try it with a sample"),
        ".",
      ),
    ),
  );
}

function failing(health: WireHealth | null): readonly HTMLElement[] {
  return (health?.degraded ?? []).map(({ part, reason, since }) =>
    h(
      "div.notice.bad",
      { role: "alert" },
      h("strong", `Degraded: ${part.replaceAll("_", " ")}`),
      h("p", `${reason}, since ${moment(since)}. The log says what it answered.`),
    ),
  );
}

function firing({ rules }: WireAlerts): readonly HTMLElement[] {
  return rules
    .filter((rule) => rule.is_firing)
    .map((rule) => {
      const show = rule.measure === "cached_share" ? percent : rule.measure === "missed_tokens" ? whole : duration;
      return h(
        "div.notice.bad",
        { role: "alert" },
        h("strong", `Alert: ${rule.name}`),
        h(
          "p",
          `${rule.measure.replaceAll("_", " ")}${rule.model === null ? "" : ` of ${rule.model}`} is ${show(rule.value)}, against ${show(rule.reference)}${rule.since === null ? "" : `, since ${moment(rule.since)}`}.`,
        ),
      );
    });
}

function tiles({ total, has_prices: hasPrices, cache_capacity_tokens: capacity }: WireSummary): HTMLElement {
  const tile = (title: string, value: string, ...sub: readonly Child[]) =>
    h("div.tile", h("dt", title), h("dd", h("span.value", value), h("span.sub", sub)));
  const apart = total.below_minimum.prompts + total.expired.prompts;
  const ttft = total.first_token_ms;
  return h(
    "dl.tiles",
    tile(
      "Cached share",
      percent(total.cached_share ?? total.expected_share),
      total.cached_share === null
        ? "expected; the engine did not report"
        : `by the engine; expected ${percent(total.expected_share)}`,
    ),
    tile("Tokens computed", short(total.uncached_tokens), `of ${short(total.prompt_tokens)} sent`),
    tile("Missed", short(total.missed_tokens), h("a", { href: linkTo(["misses"]) }, "why they were computed again")),
    tile("First token", duration(ttft?.p50), ttft === null ? "not measured yet" : `p95 ${duration(ttft.p95)}`),
    hasPrices
      ? tile("Saved", money(total.saved_money), "net of cache writes, by your prices")
      : tile("Prompts", whole(total.prompts), `${whole(total.reported_prompts)} reported by the engine`),
    capacity === null ? null : tile("Engine's cache", short(capacity), "tokens of all users, as far as is known"),
    apart === 0
      ? null
      : tile(
          "Kept apart",
          whole(apart),
          `${whole(total.below_minimum.prompts)} too short to cache, ${whole(total.expired.prompts)} expired`,
        ),
  );
}

function charts({ points, notes, has_prices: hasPrices }: WireSummary, signal: AbortSignal): readonly HTMLElement[] {
  const times = points.map(({ at }) => at);
  // The newest step has only begun: without prompts it says nothing yet.
  const of = (value: (point: WireSummary["points"][number]) => number | null) =>
    points.map((point, at) => (at === points.length - 1 && point.prompts === 0 ? null : value(point)));
  const all = { times, notes, signal };
  return [
    timeChart({
      ...all,
      title: "Cached share",
      most: 1,
      format: percent,
      series: [
        { name: "By the engine", colour: "--cached", kind: "line", values: of((point) => point.cached_share) },
        { name: "Expected", colour: "--expected", kind: "dashed", values: of((point) => point.expected_share) },
      ],
    }),
    timeChart({
      ...all,
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
    }),
    timeChart({
      ...all,
      title: "Time to the first token",
      format: duration,
      series: [
        { name: "p50", colour: "--cached", kind: "line", values: of((point) => point.first_token_ms?.p50 ?? null) },
        { name: "p95", colour: "--carried", kind: "dashed", values: of((point) => point.first_token_ms?.p95 ?? null) },
      ],
    }),
    hasPrices
      ? timeChart({
          ...all,
          title: "Saved, net of cache writes",
          format: money,
          series: [{ name: "Saved", colour: "--cached", kind: "line", values: of((point) => point.saved_money) }],
        })
      : timeChart({
          ...all,
          title: "Missed tokens",
          format: short,
          series: [{ name: "Missed", colour: "--fresh", kind: "area", values: of((point) => point.missed_tokens) }],
        }),
  ];
}

function happened(notes: readonly WireNote[]): HTMLElement | null {
  if (notes.length === 0) return null;
  const item = ({ at, kind, label, model }: WireNote) =>
    h(
      "li",
      h("time", { datetime: new Date(at).toISOString() }, moment(at)),
      h("strong", NOTES[kind]),
      ` ${label}${model === null ? "" : ` (${model})`}`,
    );
  return panel(
    "What happened",
    "The dashed lines in the charts.",
    h("ul.events", notes.toReversed().slice(0, 8).map(item)),
  );
}

function breakdown(
  { by_model: models, by_engine: engines, by_layout: layouts, has_prices: hasPrices }: WireSummary,
  query: URLSearchParams,
): HTMLElement {
  const groups = [
    ...models.map((row) => ({ group: "model", name: row.model, row })),
    ...engines.map((row) => ({ group: "engine", name: row.engine, row })),
    ...layouts.map((row) => ({ group: "layout", name: row.layout, row })),
  ];
  const { element } = figuresTable(
    "By model, engine and layout",
    [
      {
        title: "By",
        cell: ({ group }) => h("span.muted", group),
      },
      {
        title: "Name",
        isName: true,
        cell: ({ group, name }) =>
          h("a.id", { href: linkTo([], { ...Object.fromEntries(query), [group]: name }) }, name),
      },
      { title: "Prompts", isNumber: true, cell: ({ row }) => whole(row.prompts) },
      { title: "Prompt tokens", isNumber: true, cell: ({ row }) => short(row.prompt_tokens) },
      { title: "Computed", isNumber: true, cell: ({ row }) => short(row.uncached_tokens) },
      { title: "Missed", isNumber: true, cell: ({ row }) => short(row.missed_tokens) },
      { title: "Cached share", isNumber: true, cell: ({ row }) => percent(row.cached_share) },
      { title: "Expected", isNumber: true, cell: ({ row }) => percent(row.expected_share) },
      { title: "First token p50", isNumber: true, cell: ({ row }) => duration(row.first_token_ms?.p50) },
      ...(hasPrices
        ? [{ title: "Saved", isNumber: true, cell: ({ row }: { row: WireSums }) => money(row.saved_money) }]
        : []),
    ],
    groups,
  );
  return panel("By model, engine and layout", groups.length === 0 ? "Nothing yet." : null, element);
}
