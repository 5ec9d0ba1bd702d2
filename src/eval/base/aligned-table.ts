import { largest } from "../../core/text/collections.js";

/** Markdown's shortest column rule. */
const LEAST_WIDTH = 3;

/**
 * A Markdown table with aligned columns, so that it also reads as plain text. Does not escape cells.
 *
 * @param isText whether a column, from 0, holds text and is left-aligned; numbers are right-aligned. By default only the first is text.
 */
export function alignedTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  isText: (column: number) => boolean = (column) => column === 0,
): string {
  const widths = head.map((_, column) =>
    largest(
      [head, ...rows].map((cells) => cells[column]?.length ?? 0),
      LEAST_WIDTH,
    ),
  );
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, at) => (isText(at) ? (cells[at] ?? "").padEnd(width) : (cells[at] ?? "").padStart(width))).join(" | ")} |`;
  const rule = widths.map((width, at) => (isText(at) ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/** Control, zero-width and direction-changing characters, which could make a report show something it does not say. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu;
/** Joiners that emoji and several scripts need. */
const JOINERS = new Set(["\u200c", "\u200d"]);

/** Untrusted text on one line, with invisible characters named by code point, `[U+202E]`. Line breaks and tabs become spaces. */
export function visibleText(text: string): string {
  return text.replace(/[\r\n\t]+/g, " ").replace(UNSEEN, (found) => {
    if (JOINERS.has(found)) return found;
    return `[U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}
