/** The middle of some figures; of an even number of them, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[at] ?? Number.NaN) : ((sorted[at - 1] ?? 0) + (sorted[at] ?? 0)) / 2;
}
