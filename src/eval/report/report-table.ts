/**
 * One cell: a figure, with what qualifies it (an interval, a count), which may stand smaller; `isCode` where it is text of others, letter by
 * letter. Null: not measured.
 */
export type Cell = { readonly text: string; readonly detail?: string; readonly isCode?: true } | null;

export interface TableRow {
  readonly title: string;
  /** As many as columns. */
  readonly cells: readonly Cell[];
}

/** Rows under one heading; an empty title is none. */
export interface RowGroup {
  readonly title: string;
  readonly rows: readonly TableRow[];
}

/** A table as both reports show it: first a column of row titles, then figures. */
export interface ReportTable {
  readonly caption: string;
  readonly rowsAre: string;
  readonly columns: readonly string[];
  readonly groups: readonly RowGroup[];
}

/** What a cell says of what was not measured. Never a zero. */
export const NOT_MEASURED = "not measured";
