import { html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import { linkTo } from "./view.js";

export interface Filter {
  /** Its parameter, in the address and in the API. */
  readonly name: string;
  readonly title: string;
  /** Values with their labels; absent: any text. */
  readonly options?: readonly (readonly [value: string, title: string])[];
}

/** A form that keeps its values in the address, so that a filtered view has a link and a history entry. */
export function filterForm(
  path: string,
  query: URLSearchParams,
  filters: readonly Filter[],
  more: ComponentChildren,
): VNode {
  const go = (event: { currentTarget: HTMLFormElement } & Event) => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value).trim()]);
    location.hash = linkTo(path, { ...Object.fromEntries(query), ...Object.fromEntries(given) });
  };
  const fields = filters.map(({ name, title, options }) => {
    const value = query.get(name) ?? "";
    const field = options?.map(([of, words]) => html`<option value=${of} selected=${of === value}>${words}</option>`);
    return html`<div class="field">
      <label for="filter-${name}">${title}</label>
      ${
        field === undefined
          ? html`<input id="filter-${name}" name=${name} defaultValue=${value} placeholder="any" autocomplete="off" spellcheck=${false} />`
          : html`<select id="filter-${name}" name=${name}>${field}</select>`
      }
    </div>`;
  });
  return html`<form class="filters" role="search" aria-label="Filters" onSubmit=${go} onChange=${go}>${fields}${more}</form>`;
}

const WINDOWS = [
  ["hour", "Hour"],
  ["day", "Day"],
  ["month", "Month"],
] as const;

export function windowLinks(path: string, query: URLSearchParams): VNode {
  const now = summed(query).window;
  const links = WINDOWS.map(([window, title]) => {
    const href = linkTo(path, { ...Object.fromEntries(query), window });
    return html`<a class="button" href=${href} aria-current=${window === now ? "true" : undefined}>${title}</a>`;
  });
  return html`<nav class="windows" aria-label="Window of time">${links}</nav>`;
}

/** The address's filters of sums: a window of time, and one model. */
export function summed(query: URLSearchParams) {
  const [window] = WINDOWS.find(([name]) => name === query.get("window")) ?? WINDOWS[0];
  return { window, model: query.get("model") || undefined };
}
