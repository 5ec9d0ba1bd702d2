import { keptIn, LruMap } from "../text/collections.js";
import { type Digest, digestOf } from "../text/ids.js";
import { canonicalText, cutText, unstorable } from "../text/memory-text.js";
import type { GivenTime, MemoryFields, RenderedMemory, RetrievedMemory } from "./context-block.js";

/*
 * A block template says what a block gives of its memory:
 *
 *   template = *item "{memory}" *item
 *   item     = text / field / group
 *   group    = "[" *( text / field ) "]"          with at least one field
 *   field    = "{date}" / "{" time [ ":" form ] "}" / "{categories}" / "{metadata." key [ ":" form ] "}"
 *   time     = "created_at" / "updated_at"
 *   form     = "date" / "datetime"
 *   text     = characters; a backslash before "[", "]", "{", "}" or "\" makes it text
 *
 * A group whose fields do not all have a value is left out. A field outside of groups forms one with the text between it and {memory}'s
 * side, so text on its other side must stand in brackets. So a missing field leaves no gap.
 */

/** The block is the memory's text alone. */
export const DEFAULT_BLOCK_TEMPLATE = "{memory}";
/** The zone of times, where none is given. */
export const DEFAULT_TIME_ZONE = "UTC";

const MAX_TEMPLATE_CHARACTERS = 500;
const MAX_FIELDS = 16;
/** Characters of one field's value; a longer one is truncated. */
const MAX_VALUE_CHARACTERS = 200;

type Field =
  | { readonly kind: "time"; readonly of: "createdAt" | "updatedAt"; readonly form: TimeForm }
  | { readonly kind: "categories" }
  | { readonly kind: "metadata"; readonly key: string; readonly form: TimeForm | null };

/** Text and fields that are given together or not at all. */
type Group = readonly (string | Field)[];

/** A template that was read, in a time zone. */
export interface BlockTemplate {
  /** Equal for templates that give equal texts; null: the memory's text alone. */
  readonly id: Digest | null;
  readonly before: readonly Group[];
  readonly after: readonly Group[];
  readonly writeTime: WriteTime;
}

/** The template or the zone is not valid; the message is the end of a sentence whose subject is the field. */
export class BlockTemplateError extends Error {
  override readonly name = "BlockTemplateError";
}

/** The problem with a template, phrased as the end of a sentence whose subject is the field ("must …"); null for none. */
export function blockTemplateProblem(source: string): string | null {
  try {
    readBlockTemplate(source, DEFAULT_TIME_ZONE);
    return null;
  } catch (error) {
    if (error instanceof BlockTemplateError) return error.message;
    throw error;
  }
}

/** Reads a template. Throws {@link BlockTemplateError}. */
export function readBlockTemplate(source: string, zone: string): BlockTemplate {
  const wrongZone = timeZoneProblem(zone);
  if (wrongZone !== null) throw new BlockTemplateError(wrongZone);
  const items = itemsOf(source);
  const at = items.indexOf(MEMORY);
  if (at < 0 || items.lastIndexOf(MEMORY) !== at) throw new BlockTemplateError("must contain {memory} exactly once");
  const before = groupsOf(items.slice(0, at), (field, text) => [field, text]);
  const after = groupsOf(items.slice(at + 1).reverse(), (field, text) => [text, field]).reverse();
  const isPlain = before.length === 0 && after.length === 0;
  const hasTimes = [...before, ...after].flat().some((part) => typeof part !== "string" && isTime(part));
  const id = isPlain ? null : digestOf(JSON.stringify([before, after, hasTimes ? zone : null]));
  return { id, before, after, writeTime: timeWriter(zone) };
}

/** Most templates and zones of one tenant whose readings are kept. */
const MOST_READ = 32;

/**
 * Templates with what was read of each: setting up a time zone takes longer than the rest of a lookup. Least recently used forgotten first.
 */
export class BlockTemplates {
  readonly #read = new LruMap<string, BlockTemplate>(MOST_READ);

  /** As {@link readBlockTemplate}. */
  get(source: string, zone: string): BlockTemplate {
    return keptIn(this.#read, `${zone} ${source}`, () => readBlockTemplate(source, zone));
  }
}

/** A memory as its block gives it, and whether its text had to be truncated. */
export interface TemplatedMemory {
  readonly memory: RenderedMemory;
  readonly isCut: boolean;
}

/**
 * Renders a memory with a template, in at most `max` characters (UTF-16 units): the memory's own words are truncated to fit. If the rest
 * alone takes more than half of them, the block is the memory's text without it. Pure, and the same on every machine.
 */
export function renderMemory(template: BlockTemplate, memory: RetrievedMemory, max: number): TemplatedMemory {
  if (template.id === null) return asItIs(memory, max);
  const { fields = {} } = memory;
  const own = canonicalText(memory.text);
  const before = textOf(template, template.before, fields).trimStart();
  const after = textOf(template, template.after, fields).trimEnd();
  const added = before.length + after.length;
  if (own === "" || added > max / 2) return asItIs(memory, max);
  const isCut = own.length + added > max;
  const words = isCut ? cutText(own, max - added) : own;
  const rendered = { template: template.id, start: before.length, length: words.length };
  return { memory: { ...memory, text: before + words + after, rendered }, isCut };
}

function asItIs(memory: RetrievedMemory, max: number): TemplatedMemory {
  const { text } = memory;
  return text.length > max
    ? { memory: { ...memory, text: cutText(text, max) }, isCut: true }
    : { memory, isCut: false };
}

function textOf({ writeTime }: BlockTemplate, groups: readonly Group[], fields: MemoryFields): string {
  return groups
    .map((group) => {
      const parts = group.map((part) => (typeof part === "string" ? part : fieldText(part, fields, writeTime)));
      return parts.includes(null) ? "" : parts.join("");
    })
    .join("");
}

/** A field's value on one line; null for none. */
function fieldText(field: Field, fields: MemoryFields, writeTime: WriteTime): string | null {
  switch (field.kind) {
    case "time": {
      const time = fields[field.of];
      return time === undefined ? null : writeTime(time, field.form);
    }
    case "categories":
      return oneLine((fields.categories ?? []).join(", "));
    case "metadata": {
      const { metadata = {} } = fields;
      const value = Object.hasOwn(metadata, field.key) ? metadata[field.key] : undefined;
      if (value === undefined) return null;
      if (field.form === null) return oneLine(Array.isArray(value) ? value.join(", ") : String(value));
      return typeof value === "string" || typeof value === "number" ? writeTime(value, field.form) : null;
    }
  }
}

/** A value is as untrusted as the memory's text: it has no line breaks, and is escaped with the text when it is rendered. */
function oneLine(value: string): string | null {
  const line = value
    .toWellFormed()
    .replace(/[\s\p{Cc}\p{Z}]+/gu, " ")
    .trim();
  return line === "" ? null : cutText(line, MAX_VALUE_CHARACTERS);
}

const MEMORY = "memory";
type Item =
  | typeof MEMORY
  | { readonly text: string }
  | { readonly field: Field; readonly name: string }
  | { readonly group: Group };

const TOKEN = /\\([[\]{}\\])|\{([^{}]*)\}|([[\]{}\\])|([^[\]{}\\]+)/gu;

function itemsOf(source: string): readonly Item[] {
  if (source.length > MAX_TEMPLATE_CHARACTERS)
    throw new BlockTemplateError(`must have at most ${MAX_TEMPLATE_CHARACTERS} characters`);
  const problem = unstorable(source);
  if (problem !== null) throw new BlockTemplateError(problem);
  if (/[\p{Cc}\u2028\u2029]/u.test(source)) throw new BlockTemplateError("must be one line without control characters");
  const items: Item[] = [];
  let group: (string | Field)[] | null = null;
  let count = 0;
  const write = (text: string) => {
    const last = items.at(-1);
    if (group !== null) group.push(text);
    else if (typeof last === "object" && "text" in last) items[items.length - 1] = { text: last.text + text };
    else items.push({ text });
  };
  for (const [, escaped, name, structure, text] of source.trim().matchAll(TOKEN)) {
    if (text !== undefined || escaped !== undefined) write(text ?? escaped ?? "");
    else if (name === MEMORY) {
      if (group !== null) throw new BlockTemplateError("must not have {memory} in brackets: it is always given");
      items.push(MEMORY);
    } else if (name !== undefined) {
      const field = fieldOf(name);
      if (++count > MAX_FIELDS) throw new BlockTemplateError(`must have at most ${MAX_FIELDS} fields`);
      if (group === null) items.push({ field, name });
      else group.push(field);
    } else if (structure === "[" && group === null) group = [];
    else if (structure === "]" && group !== null) {
      if (group.every((part) => typeof part === "string"))
        throw new BlockTemplateError("must have a field in each pair of brackets; \\[ and \\] are brackets as text");
      items.push({ group });
      group = null;
    } else {
      throw new BlockTemplateError(
        `must not have ${JSON.stringify(structure)} here: brackets come in pairs and not within each other; a backslash before it makes it text`,
      );
    }
  }
  if (group !== null) throw new BlockTemplateError('must close "["');
  return items;
}

/**
 * The groups of one side of {memory}, from its outer end on. Text that belongs to no field is a group of its own, which is always given.
 *
 * @param joined a field with the text between it and {memory}'s side, in the template's order
 */
function groupsOf(items: readonly Item[], joined: (field: Field, text: string) => Group): Group[] {
  const groups: Group[] = [];
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    if (item === undefined || item === MEMORY) continue;
    if ("group" in item) groups.push(item.group);
    else if ("field" in item) {
      const next = items[at + 1];
      const text = typeof next === "object" && "text" in next ? next.text : "";
      groups.push(joined(item.field, text));
      if (text !== "") at++;
    } else {
      const next = items[at + 1];
      if (typeof next === "object" && "field" in next) {
        throw new BlockTemplateError(
          `must have {${next.name}} in brackets with the text around it, as in [({date}) ]{memory}: without a value, all of it is left out`,
        );
      }
      groups.push([item.text]);
    }
  }
  return groups;
}

const FIELDS = "{memory}, {date}, {created_at}, {updated_at}, {categories} and {metadata.key}";
const KEY = /^metadata\.([\w.-]{1,100})$/;

function fieldOf(name: string): Field {
  const [path = "", form = null, ...more] = name.split(":");
  if (/^(?:rerank_?)?score$/i.test(path)) {
    throw new BlockTemplateError(
      `must not contain {${path}}: it changes with every search, so the block would be another text in every prompt`,
    );
  }
  if (more.length > 0 || (form !== null && form !== "date" && form !== "datetime"))
    throw new BlockTemplateError(`must give times as :date or :datetime, unlike {${name}}`);
  if (path === "created_at" || path === "updated_at")
    return { kind: "time", of: path === "created_at" ? "createdAt" : "updatedAt", form: form ?? "date" };
  const key = KEY.exec(path)?.[1];
  if (key !== undefined) return { kind: "metadata", key, form };
  if (form === null && path === "date") return { kind: "time", of: "createdAt", form: "date" };
  if (form === null && path === "categories") return { kind: "categories" };
  throw new BlockTemplateError(`must not contain {${name}}: the fields are ${FIELDS}`);
}

function isTime(field: Field): boolean {
  return field.kind === "time" || (field.kind === "metadata" && field.form !== null);
}

/** How a time is given: its day as `YYYY-MM-DD`, or with hours and minutes as `YYYY-MM-DD hh:mm`. */
export type TimeForm = "date" | "datetime";

/** Writes times in one zone. */
export type WriteTime = (time: GivenTime, form: TimeForm) => string | null;

/** A day, and what follows of its time: hours, minutes, seconds with a fraction, and the offset from UTC. */
const ISO = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s?([Zz]|[+-]\d{2}(?::?\d{2})?)?)?$/;
/** From here on a number counts milliseconds: as seconds it would be in the year 5138. */
const FIRST_MILLISECONDS = 1e11;
const DAY_MS = 86_400_000;
/** The years 1 to 9999, in milliseconds since 1970. */
const FIRST_INSTANT = Date.parse("0001-01-01T00:00:00Z");
const LAST_INSTANT = Date.parse("9999-12-31T23:59:59Z");

/** Why a name is no time zone; null if it is one. Offsets such as `+02:00` are none: a zone has summer time. */
export function timeZoneProblem(zone: string): string | null {
  const problem = "must be the IANA name of a time zone, as Europe/Berlin";
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(zone)) return problem;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: zone });
    return null;
  } catch {
    return problem;
  }
}

/**
 * Writes times of the zone, in one form for all readers: no locale and no zone of the machine is read. A time without an offset is in UTC;
 * a day without a time stays that day in every zone. Null for what is no time of the years 1 to 9999. Throws a `RangeError` for a zone
 * that {@link timeZoneProblem} rejects.
 */
function timeWriter(zone: string): WriteTime {
  const localOf = localIn(zone);
  return (time, form) => {
    if (typeof time === "string") {
      const [, day, clock] = ISO.exec(time.trim()) ?? [];
      if (day !== undefined && clock === undefined) return isDay(day) ? day : null;
    }
    const instant = instantOf(time);
    if (instant === null || instant < FIRST_INSTANT || instant > LAST_INSTANT) return null;
    const local = localOf(instant);
    return form === "date" ? local.slice(0, "YYYY-MM-DD".length) : local;
  };
}

/** The instant of a time, in milliseconds since the epoch; null for a day without a time, and for what is no time. */
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

/** The instant at which the day of a text in ISO 8601 is over in UTC, in milliseconds since the epoch; null for what names no day. */
export function endOfDay(text: string): number | null {
  const [, day] = ISO.exec(text.trim()) ?? [];
  return day === undefined || !isDay(day) ? null : Date.parse(`${day}T00:00:00Z`) + DAY_MS;
}

/** Whether the calendar has this day: parsers let the 30th of February pass. */
function isDay(day: string): boolean {
  const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year >= 1 && month >= 1 && month <= 12 && date >= 1 && date <= days;
}

function localIn(zone: string): (instant: number) => string {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  });
  return (instant) => {
    const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, value]));
    return `${parts["year"]?.padStart(4, "0")}-${parts["month"]}-${parts["day"]} ${parts["hour"]}:${parts["minute"]}`;
  };
}
