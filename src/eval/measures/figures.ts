import type { Interval } from "./bootstrap.js";

/** Writes one kind of figure. */
export type Format = (value: number) => string;

/** By digits after the point; made once, for making one takes longer than a thousand figures. */
const FORMATS = [0, 1, 2, 3].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

const grouped = (value: number, digits: 0 | 1 | 2 | 3) => FORMATS[digits]?.format(value) ?? String(value);

const withMinus = (text: string) => text.replace("-", "−");

/** `1,234`; `12.3` below a hundred. */
export const tokens: Format = (value) => withMinus(grouped(value, Math.abs(value) < 100 ? 1 : 0));

/** `1,234`, `12.3`, `0.12`: three figures at least. */
export const milliseconds: Format = (value) => {
  const size = Math.abs(value);
  return withMinus(grouped(value, size < 1 ? 2 : size < 100 ? 1 : 0));
};

/** `75.3 %` of 0.753. */
export const percent: Format = (value) => withMinus(`${grouped(100 * value, 1)} %`);

/** `0.512`. */
export const score: Format = (value) => withMinus(grouped(value, 3));

/** `1.2` of 0.012: points of a score from 0 to 1, or per cent. */
export const points: Format = (value) => withMinus(grouped(100 * value, 1));

/** `0.25×`. */
export const times: Format = (value) => `${grouped(value, 2)}×`;

/** `$1.68`; three decimals below a dollar. */
export const dollars: Format = (value) => `$${grouped(value, value < 1 ? 3 : 2)}`;

/** Written with its sign. */
export function signed(format: Format): Format {
  return (value) => (value > 0 ? `+${format(value)}` : format(value));
}

/** `−12 (−14 to −10)`. */
export function withInterval({ value, low, high }: Interval, format: Format): string {
  return `${format(value)} (${format(low)} to ${format(high)})`;
}
