/** Prints the head of a table in Markdown: names on the left, then figures. */
export function printHead(titles: readonly unknown[]): void {
  printRow(titles);
  printRow(titles.map((_, column) => (column === 0 ? "---" : "--:")));
}

export function printRow(cells: readonly unknown[]): void {
  console.log(`| ${cells.join(" | ")} |`);
}

/** `1,234`. */
export const whole = (value: number) => Math.round(value).toLocaleString("en");

/** `12.3 %` of 0.123. */
export const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
