import type { MemoryFields, MetadataValue } from "../core/blocks/context-block.js";

/** Most entries of a memory's metadata that are kept. */
const MAX_ENTRIES = 100;

/**
 * What an item says of its memory besides the text, in either spelling. A field of another type counts as missing, since no prompt should
 * fail for what it may not even name; undefined where there is none at all. Every item of every search passes here, and most prompts give
 * none of its fields, so the checks are by hand: a schema takes half a millisecond for 100 items.
 */
export function mem0Fields(item: Readonly<Record<string, unknown>>): MemoryFields | undefined {
  const createdAt = timeOf(item["createdAt"] ?? item["created_at"]);
  const updatedAt = timeOf(item["updatedAt"] ?? item["updated_at"]);
  const categories = categoriesOf(item["categories"]);
  const metadata = metadataOf(item["metadata"]);
  if (createdAt === undefined && updatedAt === undefined && categories === undefined && metadata === undefined)
    return undefined;
  return { createdAt, updatedAt, categories, metadata };
}

function timeOf(given: unknown): string | number | undefined {
  if (typeof given === "string" || typeof given === "number") return given;
  return given instanceof Date ? given.getTime() : undefined;
}

function categoriesOf(given: unknown): readonly string[] | undefined {
  if (typeof given === "string") return [given];
  return Array.isArray(given) && given.every((name) => typeof name === "string") ? given : undefined;
}

/** The entries that a block can give: text, numbers, truth values, and lists of those. */
function metadataOf(given: unknown): Readonly<Record<string, MetadataValue>> | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
  const values = Object.values(given);
  if (values.length === 0) return undefined;
  if (values.length <= MAX_ENTRIES && values.every(isMetadataValue)) return given as Record<string, MetadataValue>;
  const entries = Object.entries(given).slice(0, MAX_ENTRIES);
  const kept = entries.filter((entry): entry is [string, MetadataValue] => isMetadataValue(entry[1]));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

function isMetadataValue(value: unknown): value is MetadataValue {
  return isPlain(value) || (Array.isArray(value) && value.every(isPlain));
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
