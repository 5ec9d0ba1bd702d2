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

/** A mean with its interval of 95 %: `+0.012 ± 0.034`. */
export function meanWithInterval(values: readonly number[]): string {
  const middle = mean(values);
  const variance = values.reduce((sum, one) => sum + (one - middle) ** 2, 0) / (values.length - 1);
  const interval = 1.96 * Math.sqrt(variance / values.length);
  return `${middle < 0 ? "−" : "+"}${Math.abs(middle).toFixed(3)} ± ${interval.toFixed(3)}`;
}
