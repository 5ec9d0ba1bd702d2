import { html } from "htm/preact";
import type { VNode } from "preact";
import type { UsageSummary } from "../client/index.js";
import { summed, windowLinks } from "./filters.js";
import { counted, money, percent, short, whole } from "./format.js";
import { service } from "./service.js";
import { empty, linkTo, loading, panel } from "./view.js";

type Cause = UsageSummary["misses"][number];

/** Why prompts missed, and what to do about it. */
export const missesView = loading(
  (query, signal) => service.usageSummary(summed(query), { signal }),
  ({ data: { misses, total, window }, query }) => {
    const met = misses.filter(({ prompts, tokens }) => prompts > 0 || tokens > 0);
    const apart = met.filter(isApart);
    const cards = (causes: readonly Cause[]) => causes.map((cause) => card(cause, window));
    const title = `${whole(total.missedTokens)} tokens were computed beyond the new turns' own text`;
    const note =
      total.missedMoney === null
        ? "Each prompt's have one cause. The new turns' own text is not among them: no cache could have it."
        : `They cost ${money(total.missedMoney)} more than cached ones, by your prices. The new turns' own text is not among them.`;
    const whyApart = "Unused for longer than the cache keeps prefixes: not in the cached share.";
    return html`
      <div class="row spread"><h1>Why did prompts miss?</h1>${windowLinks("misses", query)}</div>
      ${panel(
        title,
        note,
        met.length === 0
          ? empty("Nothing missed in this window")
          : cards(met.filter((cause) => !apart.includes(cause))),
      )}
      ${apart.length > 0 && panel("Kept apart", whyApart, cards(apart))}`;
  },
);

/** Whether its prompts are excluded from cached shares. */
function isApart({ cause }: Cause): boolean {
  return cause === "expired";
}

function card(of: Cause, window: string): VNode {
  const { cause, title, advice, prompts, tokens, share, money: cost } = of;
  const meter = { width: `${isApart(of) ? 0 : share * 100}%` };
  const counts = `${whole(tokens)} tokens in ${counted(prompts, "prompt")}${cost === null ? "" : `, ${money(cost)}`}. `;
  const shown = html`<a href=${linkTo("requests", { cause })} title="Requests of the last ${window}">Show them</a>`;
  return html`<article class="cause">
    <div>
      <span class="value">${isApart(of) ? short(tokens) : percent(share)}</span>
      <span class="meter" aria-hidden="true"><span style=${meter}></span></span>
    </div>
    <div><h3>${title}</h3><p class="advice">${advice}</p><p class="note">${counts}${prompts > 0 && shown}</p></div>
  </article>`;
}
