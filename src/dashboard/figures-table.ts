import { html } from "htm/preact";
import type { ComponentChildren, VNode } from "preact";
import { scrolling } from "./view.js";

/** A column of a table. */
export interface Column<T> {
  readonly title: string;
  readonly isNumber?: boolean;
  /** Whether it names the row. */
  readonly isName?: boolean;
  /** Whether it is known of a row; a column that is known of none is left out. Absent: of all. */
  readonly isKnown?: (row: T) => boolean;
  readonly cell: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Identifies a row when rows change; absent: its place. */
  readonly keyOf?: (row: T) => number;
  readonly classOf?: (row: T) => string | undefined;
}

/** A table that scrolls sideways where it is too wide. */
export function figuresTable<T>({ caption, columns: all, rows, keyOf, classOf }: TableProps<T>): VNode {
  const columns = all.filter(({ isKnown }) => isKnown === undefined || rows.some(isKnown));
  const head = columns.map(({ title, isNumber }) => html`<th class=${isNumber && "number"} scope="col">${title}</th>`);
  const cells = (row: T) =>
    columns.map(({ isNumber, isName, cell }) =>
      isName
        ? html`<th class=${isNumber && "number"} scope="row">${cell(row)}</th>`
        : html`<td class=${isNumber && "number"}>${cell(row)}</td>`,
    );
  const body = rows.map((row, at) => html`<tr key=${keyOf?.(row) ?? at} class=${classOf?.(row)}>${cells(row)}</tr>`);
  return scrolling(
    caption,
    html`<table><caption class="unseen">${caption}</caption><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`,
  );
}
