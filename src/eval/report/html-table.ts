import { type Markup, markup } from "./markup.js";
import { type Cell, NOT_MEASURED, type ReportTable, type RowGroup } from "./report-table.js";

/** A table in a box that scrolls sideways where the page is narrow; the row titles stay in sight. */
export function htmlTable({ caption, rowsAre, columns, groups }: ReportTable): Markup {
  return markup`<div class="scroll" role="region" tabindex="0" aria-label="${caption}"><table>
<caption>${caption}</caption>
<thead><tr><th scope="col">${rowsAre}</th>${columns.map((title) => markup`<th scope="col">${title}</th>`)}</tr></thead>
${groups.map((group) => rowGroup(group, columns.length))}</table></div>
`;
}

function rowGroup({ title, rows }: RowGroup, columns: number): Markup {
  const head =
    title === ""
      ? null
      : markup`<tr class="group"><th scope="rowgroup" colspan="${columns + 1}">${title}</th></tr>
`;
  return markup`<tbody>${head}${rows.map(
    ({ title, cells }) => markup`<tr><th scope="row">${title}</th>${cells.map(cell)}</tr>
`,
  )}</tbody>
`;
}

function cell(given: Cell): Markup {
  if (given === null) return markup`<td class="none">${NOT_MEASURED}</td>`;
  const detail = given.detail === undefined ? null : markup` <small>${given.detail}</small>`;
  const text = given.isCode ? markup`<code>${given.text}</code>` : given.text;
  return markup`<td>${text}${detail}</td>`;
}
