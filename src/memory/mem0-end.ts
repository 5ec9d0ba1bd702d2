import { endOfDay, instantOf } from "../core/blocks/block-template.js";
import { ENDED, type MemoryEnd } from "../core/blocks/context-block.js";
import type { MemoryId } from "../core/text/ids.js";

/*
 * When a memory ceases to hold, in the words of Mem0:
 *
 *   expiration_date               its last day in UTC: the platform, the REST server, Python and TypeScript
 *   lifecycle_state, replaced_by  the platform: another memory took its place
 *   superseded_by, is_deleted     the same of older versions, and of histories
 *   valid_until, invalid_at       an instant; or its last day, and the first day after it
 *   state                         OpenMemory
 *   event: DELETE                 an answer to `add`
 *
 * The platform's SDK writes them in camelCase. What `mem0ai/oss` and the REST server do not know as fields of their own is in `metadata`;
 * there `state`, `event` and times may be the application's, and mean something else.
 */

type Fields = Readonly<Record<string, unknown>>;

/** States in which no search of Mem0's own gives a memory. In every other one it holds. */
const ENDED_STATES: ReadonlySet<unknown> = new Set([
  "superseded",
  "replaced",
  "archived",
  "deleted",
  "expired",
  "invalid",
  "invalidated",
  "inactive",
  "outdated",
  "obsolete",
  "deprecated",
  "paused",
]);
/** A time before 1970 is past, and differs from {@link ENDED}. */
const LONG_AGO = 1;

/** What an item says of its memory's end; undefined where it says of none. What cannot be read says nothing. Never throws. */
export function mem0End(item: Fields): MemoryEnd | undefined {
  const { metadata } = item;
  const own = [item, ...(typeof metadata === "object" && metadata !== null ? [metadata as Fields] : [])];
  const replacedBy = own.map(successorIn).find((id) => id !== undefined);
  const hasEnded = replacedBy !== undefined || isEndedState(item["state"]) || isDeletion(item["event"]);
  if (hasEnded || own.some(saysEnded))
    return { until: ENDED, ...(typeof replacedBy === "string" ? { replacedBy } : {}) };
  const times = [...own.map(lastDayOf), timeOf(item, "valid_until", endOfDay), timeOf(item, "invalid_at", startOfDay)];
  const [until] = times.filter((time) => time !== null).sort((a, b) => a - b);
  return until === undefined ? undefined : { until: Math.max(until, LONG_AGO) };
}

function saysEnded(fields: Fields): boolean {
  return isEndedState(of(fields, "lifecycle_state")) || isTrue(of(fields, "is_deleted"));
}

/** A field in either spelling. */
function of(fields: Fields, name: string): unknown {
  return fields[name] ?? fields[name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())];
}

function isEndedState(state: unknown): boolean {
  return typeof state === "string" && ENDED_STATES.has(state.trim().toLowerCase());
}

function isDeletion(event: unknown): boolean {
  return typeof event === "string" && event.trim().toUpperCase() === "DELETE";
}

/** SQLite and Python write truth as numbers, too. */
function isTrue(value: unknown): boolean {
  return value === true || value === 1 || value === "true" || value === "True";
}

/** The memory that took this one's place; null where it is not named so that it can be found; undefined for none. */
function successorIn(fields: Fields): MemoryId | null | undefined {
  const named = of(fields, "replaced_by") ?? of(fields, "superseded_by");
  const id: unknown = Array.isArray(named) ? named.at(-1) : named;
  if (typeof id === "number") return String(id) as MemoryId;
  if (typeof id === "string") return id === "" ? undefined : (id as MemoryId);
  return typeof id === "object" && id !== null ? null : undefined;
}

/** `expiration_date`: Mem0 gives a memory on that day, and not on the next. */
function lastDayOf(fields: Fields): number | null {
  const day = of(fields, "expiration_date");
  return typeof day === "string" ? endOfDay(day) : null;
}

function timeOf(fields: Fields, name: string, ofDay: (day: string) => number | null): number | null {
  const time = of(fields, name);
  if (typeof time === "number") return instantOf(time);
  return typeof time === "string" ? (instantOf(time) ?? ofDay(time)) : null;
}

function startOfDay(day: string): number | null {
  return instantOf(`${day.trim()}T00:00Z`);
}
