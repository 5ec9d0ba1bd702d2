/* Figures as people read them. An unknown figure is a dash, never a zero. */

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

const UNKNOWN = "–";

/** 12,345 */
export function whole(value: number | null | undefined): string {
  return value === null || value === undefined ? UNKNOWN : WHOLE.format(Math.round(value));
}

/** 1 turn, 2 turns */
export function counted(count: number, what: string): string {
  return `${whole(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** 12.3K */
export function short(value: number | null | undefined): string {
  return value === null || value === undefined ? UNKNOWN : SHORT.format(value);
}

/** 87.5%. Rounding never shows some as none, or nearly all as all: <0.1%, >99.9%. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN;
  if (share > 0 && share < 0.0005) return "<0.1%";
  return share < 1 && share >= 0.9995 ? ">99.9%" : PERCENT.format(share);
}

/** `part` of `all`; null where there is nothing to have a share of. */
export function shareOf(part: number | null | undefined, all: number | null | undefined): number | null {
  return part === null || part === undefined || !all ? null : part / all;
}

/** 0.3 ms, 45 ms, 1.2 s, 3 min, 2.5 h, 4 d. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return UNKNOWN;
  const steps: readonly (readonly [number, string])[] = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1_000, "s"],
  ];
  const [unit, name] = steps.find(([least]) => ms >= least) ?? [1, "ms"];
  const value = ms / unit;
  return `${Math.round(value * 10) % 10 === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${name}`;
}

/** Time since a moment, both in epoch milliseconds: `now`, `5 s ago`, `3 min ago`. */
export function ago(at: number, now: number): string {
  const ms = Math.max(0, now - at);
  return ms < 1_500 ? "now" : `${duration(ms < 60_000 ? Math.floor(ms / 1_000) * 1_000 : ms)} ago`;
}

/** A moment in epoch milliseconds, in the reader's time zone. */
export function moment(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** An amount in the operator's currency, which is unknown. Rounding never shows some as none. */
export function money(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return UNKNOWN;
  const size = Math.abs(amount);
  if (size > 0 && size < 0.00005) return amount > 0 ? "<0.0001" : ">-0.0001";
  const digits = amount === 0 || size >= 100 ? 0 : size >= 1 ? 2 : 4;
  return amount.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A long id, shortened in the middle. */
export function shortId(id: string, most = 24): string {
  return id.length <= most ? id : `${id.slice(0, most - 7)}…${id.slice(-6)}`;
}
