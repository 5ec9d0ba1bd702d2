import { quantile } from "../src/eval/measures/measured.js";

/** The middle of some figures; of an even number of them, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5) ?? Number.NaN;
}
