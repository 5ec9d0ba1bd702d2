import { z } from "zod";
import type { MemoryFields, MetadataValue } from "../core/blocks/context-block.js";

/** Most entries of a memory's metadata that are kept. */
const MAX_ENTRIES = 100;

const time = z.union([z.string(), z.number(), z.date().transform((date) => date.getTime())]);
const categories = z.union([z.string().transform((name) => [name]), z.array(z.string())]);
const value = z.union([z.string(), z.number(), z.boolean()]);
const metadataValue = z.union([value, z.array(value)]);

/**
 * What an item says of its memory besides the text, in either spelling. A field of another type counts as missing, since no prompt should
 * fail for what it may not even name; undefined where there is none at all.
 */
export function mem0Fields(item: Readonly<Record<string, unknown>>): MemoryFields | undefined {
  const createdAt = read(time, item["createdAt"] ?? item["created_at"]);
  const updatedAt = read(time, item["updatedAt"] ?? item["updated_at"]);
  const named = read(categories, item["categories"]);
  const metadata = metadataOf(item["metadata"]);
  const fields = {
    ...(createdAt === undefined ? {} : { createdAt }),
    ...(updatedAt === undefined ? {} : { updatedAt }),
    ...(named === undefined ? {} : { categories: named }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  return Object.keys(fields).length === 0 ? undefined : fields;
}

function read<T>(schema: z.ZodType<T>, given: unknown): T | undefined {
  if (given === undefined || given === null) return undefined;
  const parsed = schema.safeParse(given);
  return parsed.success ? parsed.data : undefined;
}

/** The entries that a block can give: text, numbers, truth values, and lists of those. */
function metadataOf(given: unknown): Readonly<Record<string, MetadataValue>> | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
  const entries = Object.entries(given).slice(0, MAX_ENTRIES);
  const kept = entries.flatMap(([key, entry]): [string, MetadataValue][] => {
    const parsed = read(metadataValue, entry);
    return parsed === undefined ? [] : [[key, parsed]];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
