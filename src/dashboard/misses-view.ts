import { getJson } from "./api.js";
import { CAUSES } from "./causes.js";
import { h } from "./dom.js";
import { windowLinks, windowOf } from "./filters.js";
import { counted, money, percent, shareOf, short, whole } from "./format.js";
import { empty, linkTo, panel, showing, type View } from "./view.js";
import type { WireMisses } from "./wire.js";

type Cause = WireMisses["causes"][number];

/** Why tokens that were sent before are computed again, and what to do about it. */
export const missesView: View = ({ root, query, signal }) =>
  showing(root, signal, async () => {
    const filter = { model: query.get("model"), engine: query.get("engine"), layout: query.get("layout") };
    const misses = await getJson<WireMisses>("/usage/misses", { window: windowOf(query), ...filter }, signal);
    const met = misses.causes.filter(({ prompts, tokens }) => prompts > 0 || tokens > 0);
    const counted = met.filter(({ is_apart: isApart }) => !isApart);
    const apart = met.filter(({ is_apart: isApart }) => isApart);
    const others = misses.causes.filter((cause) => !met.includes(cause));
    return [
      h("div.row.spread", h("h1", "Why prompts missed"), windowLinks(["misses"], query)),
      panel(
        `${whole(misses.missed_tokens)} tokens were sent before and computed again`,
        misses.missed_money === null
          ? "Each has a cause. New tokens are not among them: no cache could have them."
          : `They cost ${money(misses.missed_money)} more than cached ones, by your prices. New tokens are not among them.`,
        met.length === 0 ? empty("Nothing missed in this window") : shares(counted, misses),
        counted.map((cause) => card(cause, misses)),
      ),
      apart.length === 0
        ? null
        : panel(
            "Kept apart",
            "Too short for the provider's cache, or unused for longer than it keeps prefixes: not in the cached share.",
            apart.map((cause) => card(cause, misses)),
          ),
      others.length === 0
        ? null
        : h(
            "details.panel",
            h("summary", `${others.length} more causes, not met in this window`),
            others.map((cause) => card(cause, misses)),
          ),
    ];
  });

/** All causes in one bar, as wide as their tokens. */
function shares(causes: readonly Cause[], { missed_tokens: all }: WireMisses): HTMLElement {
  const words = causes.map(({ cause, share }) => `${CAUSES[cause]} ${percent(share)}`).join(", ");
  const found = causes.filter(({ tokens }) => tokens > 0);
  return h(
    "div.bar.tall",
    { role: "img", "aria-label": `Shares of the missed tokens: ${words}` },
    found.map(({ cause, tokens }, at) =>
      h("span.part", {
        css: { width: `${(shareOf(tokens, all) ?? 0) * 100}%`, "--colour": shade(at) },
        title: `${CAUSES[cause]}: ${whole(tokens)} tokens`,
      }),
    ),
  );
}

/** Colours of causes, most tokens first. */
function shade(at: number): string {
  return `var(--cause-${(at % 8) + 1})`;
}

function card(
  { cause, title, advice, prompts, tokens, share, money: cost, is_apart: isApart }: Cause,
  { causes, window }: WireMisses,
): HTMLElement {
  const rank = causes
    .filter((other) => !other.is_apart && other.tokens > 0)
    .findIndex((other) => other.cause === cause);
  return h(
    "article.cause",
    h(
      "div.cause-share",
      h("span.value", isApart ? short(tokens) : percent(share)),
      h(
        "span.meter",
        { "aria-hidden": true },
        h("span", {
          css: { width: `${isApart ? 0 : share * 100}%`, background: rank < 0 ? "var(--annotation)" : shade(rank) },
        }),
      ),
    ),
    h(
      "div",
      h("h3", title),
      h("p.advice", advice),
      h(
        "p.note",
        `${whole(tokens)} tokens in ${counted(prompts, "prompt")}${cost === null ? "" : `, ${money(cost)}`}. `,
        prompts === 0
          ? null
          : h("a", { href: linkTo(["requests"], { cause }), title: `Requests of the last ${window}` }, "Show them"),
      ),
    ),
  );
}
