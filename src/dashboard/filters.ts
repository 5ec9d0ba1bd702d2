import { type Child, fill, h, newId } from "./dom.js";
import { linkTo } from "./view.js";

/** A choice or a text that a view is filtered by. */
export interface Filter {
  /** Its parameter, in the address and in the API. */
  readonly name: string;
  readonly title: string;
  /** Values and their words; absent: any text. */
  readonly options?: readonly (readonly [value: string, title: string])[];
  readonly placeholder?: string;
}

/** A form whose values are the address's parameters, so that a filtered view can be linked to and gone back from. */
export function filterForm(
  path: readonly string[],
  query: URLSearchParams,
  filters: readonly Filter[],
  ...more: readonly Child[]
): HTMLElement {
  const go = (form: HTMLFormElement) => {
    const given = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
    location.hash = linkTo(path, { ...Object.fromEntries(query), ...given });
  };
  const form = h("form.filters", {
    role: "search",
    "aria-label": "Filters",
    on: {
      submit: (event) => {
        event.preventDefault();
        go(form);
      },
      change: () => go(form),
    },
  });
  const fields = filters.map(({ name, title, options, placeholder }) => {
    const id = newId(name);
    const value = query.get(name) ?? "";
    const field =
      options === undefined
        ? h("input", { id, name, value, placeholder: placeholder ?? "any", autocomplete: "off", spellcheck: "false" })
        : h(
            "select",
            { id, name },
            options.map(([of, words]) => h("option", { value: of, selected: of === value }, words)),
          );
    return h("div.field", h("label", { for: id }, title), field);
  });
  fill(form, ...fields, ...more);
  return form;
}

/** Links for the windows of time, the address's other parameters kept. */
export function windowLinks(path: readonly string[], query: URLSearchParams): HTMLElement {
  const now = windowOf(query);
  return h(
    "nav.windows",
    { "aria-label": "Window of time" },
    WINDOWS.map((window) =>
      h(
        "a.button",
        {
          href: linkTo(path, { ...Object.fromEntries(query), window }),
          "aria-current": window === now ? "true" : null,
        },
        { hour: "Hour", day: "Day", month: "Month" }[window],
      ),
    ),
  );
}

const WINDOWS = ["hour", "day", "month"] as const;

/** The window of time that the address names; else the last hour. */
export function windowOf(query: URLSearchParams): (typeof WINDOWS)[number] {
  return WINDOWS.find((window) => window === query.get("window")) ?? "hour";
}
