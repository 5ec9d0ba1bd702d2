import { type Digest, digestOf } from "../text/ids.js";
import { LruMap } from "../text/lru-map.js";
import { cutText, unstorable } from "../text/storable-text.js";
import { canonicalText, type MemoryFields, type RenderedMemory, type RetrievedMemory } from "./context-block.js";
import { type TimeForm, timeWriter, timeZoneProblem, type WriteTime } from "./field-times.js";

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
    const key = `${zone} ${source}`;
    const known = this.#read.get(key);
    if (known !== undefined) return known;
    const template = readBlockTemplate(source, zone);
    this.#read.set(key, template);
    return template;
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
