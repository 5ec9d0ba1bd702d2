/*
 * A histogram of times whose bins grow by 15 %, from 1 ms to 20 minutes: percentiles of sums of many prompts, within 7 % of their value.
 */

const GROWTH = 1.15;
/** Bins are 0 to this one. */
export const LAST_TIME_BIN = 100;

/** The bin of a time in milliseconds. */
export function timeBin(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(LAST_TIME_BIN, Math.ceil(Math.log(ms) / Math.log(GROWTH)));
}

/** The middle of a bin, in milliseconds. */
function middleOf(bin: number): number {
  return bin === 0 ? 1 : GROWTH ** (bin - 0.5);
}

/** The time that a share of all times is not above, in milliseconds; null without times. `share`: 0 to 1. */
export function timeAt(counts: ReadonlyMap<number, number>, share: number): number | null {
  const bins = [...counts].sort(([a], [b]) => a - b);
  const wanted = bins.reduce((sum, [, count]) => sum + count, 0) * share;
  let seen = 0;
  for (const [bin, count] of bins) {
    seen += count;
    if (seen >= wanted && count > 0) return middleOf(bin);
  }
  return null;
}
