import { visibleText } from "../base/aligned-table.js";
import { NOT_MEASURED } from "../measures/measured.js";
import type { Cell, ReportTable, RowGroup } from "./report-tables.js";

/** Safe HTML, made by {@link markup} or of our own constants: untrusted text never gets there unescaped. */
export class Markup {
  constructor(readonly source: string) {}
}

/** A part of a template: text and numbers are escaped, markup is not. */
export type MarkupPart = string | number | Markup | readonly MarkupPart[] | null;

/** A template of HTML. Escapes its parts for text and double-quoted attributes, unless they are markup. */
export function markup(strings: TemplateStringsArray, ...parts: readonly MarkupPart[]): Markup {
  return new Markup(strings.map((string, at) => string + sourceOf(parts[at] ?? null)).join(""));
}

function sourceOf(part: MarkupPart): string {
  if (part === null) return "";
  if (part instanceof Markup) return part.source;
  if (typeof part === "number") return String(part);
  if (typeof part === "string") return escaped(part);
  return part.map(sourceOf).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return visibleText(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** A table that scrolls sideways on narrow pages; row titles stay visible. */
export function htmlTable({ caption, rowsAre, columns, groups }: ReportTable): Markup {
  return markup`<div class="scroll" role="region" tabindex="0" aria-label="${caption}"><table>
<caption>${caption}</caption>
<thead><tr><th scope="col">${rowsAre}</th>${columns.map((title) => markup`<th scope="col">${title}</th>`)}</tr></thead>
${groups.map((group) => rowGroup(group, columns.length))}</table></div>
`;
}

function rowGroup({ title, rows }: RowGroup, columns: number): Markup {
  return markup`<tbody><tr class="group"><th scope="rowgroup" colspan="${columns + 1}">${title}</th></tr>
${rows.map(
  ({ title, cells }) => markup`<tr><th scope="row">${title}</th>${cells.map(cell)}</tr>
`,
)}</tbody>
`;
}

function cell(given: Cell): Markup {
  if (given === null) return markup`<td class="none">${NOT_MEASURED}</td>`;
  const detail = given.detail === undefined ? null : markup` <small>${given.detail}</small>`;
  return markup`<td>${given.text}${detail}</td>`;
}
