/* Times as memory sources write them, independent of the machine's locale and zone. */

/** ISO 8601, or seconds or milliseconds since 1970. */
export type GivenTime = string | number;

/** A day, a time with an optional fraction, and the offset from UTC. */
const ISO = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s?([Zz]|[+-]\d{2}(?::?\d{2})?)?)?$/;
/** From here on a number counts milliseconds: as seconds it would be in the year 5138. */
const FIRST_MILLISECONDS = 1e11;
const DAY_MS = 86_400_000;
const FIRST_INSTANT = Date.parse("0001-01-01T00:00:00Z");
const LAST_INSTANT = Date.parse("9999-12-31T23:59:59Z");

/** The UTC day as `YYYY-MM-DD`; null outside the years 1 to 9999. A time without an offset is in UTC. */
export function utcDay(time: GivenTime): string | null {
  if (typeof time === "string") {
    const [, day, clock] = ISO.exec(time.trim()) ?? [];
    if (day !== undefined && clock === undefined) return isDay(day) ? day : null;
  }
  const instant = instantOf(time);
  if (instant === null || instant < FIRST_INSTANT || instant > LAST_INSTANT) return null;
  return new Date(instant).toISOString().slice(0, "YYYY-MM-DD".length);
}

/** In milliseconds since the epoch; null for a day without a time, and for no time. */
export function instantOf(time: GivenTime): number | null {
  if (typeof time === "number") {
    if (!Number.isFinite(time)) return null;
    return Math.abs(time) < FIRST_MILLISECONDS ? time * 1_000 : time;
  }
  const [, day, clock, seconds = "00", offset = "Z"] = ISO.exec(time.trim()) ?? [];
  if (day === undefined || clock === undefined || !isDay(day)) return null;
  // With its offset in full, the text means one instant to every machine.
  const [hours, minutes] = /^[Zz]$/.test(offset) ? ["+00", "00"] : [offset.slice(0, 3), offset.slice(-2)];
  const inFull = offset.length === 3 ? `${hours}:00` : `${hours}:${minutes}`;
  const instant = Date.parse(`${day}T${clock}:${seconds}.000${inFull}`);
  return Number.isNaN(instant) ? null : instant;
}

/** When the day of an ISO 8601 text ends in UTC, in milliseconds since the epoch. */
export function endOfDay(text: string): number | null {
  const [, day] = ISO.exec(text.trim()) ?? [];
  return day === undefined || !isDay(day) ? null : Date.parse(`${day}T00:00:00Z`) + DAY_MS;
}

/** Parsers accept the 30th of February. */
function isDay(day: string): boolean {
  const instant = Date.parse(`${day}T00:00:00Z`);
  return instant >= FIRST_INSTANT && new Date(instant).toISOString().startsWith(day);
}
