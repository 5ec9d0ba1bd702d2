import { type Child, h } from "./dom.js";

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  /** The first column names the row unless another does. */
  readonly isName?: boolean;
  readonly cell: (row: T) => Child;
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
      columns.map(({ isNumber, isName, cell }) => {
        const props = { class: isNumber ? "number" : "" };
        return isName ? h("th", { ...props, scope: "row" }, cell(row)) : h("td", props, cell(row));
      }),
    );
  const body = h("tbody", rows.map(rowOf));
  const head = columns.map(({ title, isNumber }) => h("th", { class: isNumber ? "number" : "", scope: "col" }, title));
  const table = h("table", h("caption.unseen", caption), h("thead", h("tr", head)), body);
  const element = h("div.scroll", { tabindex: 0, role: "region", "aria-label": caption }, table);
  return { element, body, rowOf };
}
