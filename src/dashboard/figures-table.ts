import { type Child, h } from "./dom.js";

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  /** The first column names the row unless another does. */
  readonly isName?: boolean;
  readonly cell: (row: T) => Child | readonly Child[];
}

/** A table that scrolls sideways where it is too wide, by keyboard, too. */
export function figuresTable<T>(
  caption: string,
  columns: readonly Column<T>[],
  rows: readonly T[],
): {
  readonly element: HTMLElement;
  readonly body: HTMLTableSectionElement;
  readonly rowOf: (row: T) => HTMLTableRowElement;
} {
  const rowOf = (row: T) =>
    h(
      "tr",
      null,
      ...columns.map(({ isNumber, isName, cell }) => {
        const content = cell(row);
        const children = (Array.isArray(content) ? content : [content]) as readonly Child[];
        const props = { class: isNumber ? "number" : "" };
        return isName ? h("th", { ...props, attrs: { scope: "row" } }, ...children) : h("td", props, ...children);
      }),
    );
  const body = h("tbody", null, ...rows.map(rowOf));
  const head = columns.map(({ title, isNumber }) =>
    h("th", { class: isNumber ? "number" : "", attrs: { scope: "col" } }, title),
  );
  const table = h(
    "table",
    null,
    h("caption", { class: "unseen" }, caption),
    h("thead", null, h("tr", null, ...head)),
    body,
  );
  const element = h("div", { class: "scroll", attrs: { tabindex: 0, role: "region", "aria-label": caption } }, table);
  return { element, body, rowOf };
}
