import { quantile as quantileOrNull } from "../src/eval/measures/measured.js";

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** As `measured.ts` has it; NaN of none. */
export function quantile(values: readonly number[], share: number): number {
  return quantileOrNull(values, share) ?? Number.NaN;
}

/** The middle of some figures; of an even number of them, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}
