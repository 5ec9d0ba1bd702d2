/*
 * kv-events/: what vLLM and SGLang publish of their prefix caches, over ZeroMQ.
 * In: the addresses of their publishers. Out: batches of events (`KvEvent`) in order, and word of those that were lost.
 * The packages `zeromq` and `msgpackr` are loaded by whoever follows events.
 */

import type { KvEvent } from "../../core/index.js";

/** Hashes or tokens of one event that are read, at most. */
const MOST_ITEMS = 4_000_000;
const MOST_BLOCK_TOKENS = 65_536;
/** Where blocks are that name no place. */
const DEFAULT_MEDIUM = "GPU";

/** Fields of events that come as arrays, after the name: vLLM before 0.12, SGLang, relays. */
const POSITIONS: Readonly<Record<string, readonly string[]>> = {
  BlockStored: [
    "block_hashes",
    "parent_block_hash",
    "token_ids",
    "block_size",
    "lora_id",
    "medium",
    "lora_name",
    "extra_keys",
    "group_idx",
  ],
  BlockRemoved: ["block_hashes", "medium", "group_idx"],
  AllBlocksCleared: [],
};

/**
 * Reads a batch as its publisher encoded it: `[time, events, …]`, each event a map or an array whose last fields may be left out. Hashes are
 * numbers of 64 bits or bytes. Of models with several groups of caches the first one counts, as prefixes are found by it. Events that are not
 * understood are left out.
 *
 * @param decoded by MessagePack, integers of 64 bits as bigint
 * @returns null where it is no batch
 */
export function readKvEvents(decoded: unknown): readonly KvEvent[] | null {
  if (!Array.isArray(decoded) || !Array.isArray(decoded[1])) return null;
  return decoded[1].flatMap((event: unknown) => readEvent(fieldsOf(event)) ?? []);
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(event: unknown): Fields {
  if (!Array.isArray(event)) return typeof event === "object" && event !== null ? (event as Fields) : {};
  const [type, ...values] = event as unknown[];
  const names = POSITIONS[String(type)] ?? [];
  return { type, ...Object.fromEntries(names.map((name, at) => [name, values[at]])) };
}

function readEvent(event: Fields): KvEvent | null {
  const { type, group_idx: group } = event;
  if (group != null && Number(group) !== 0) return null;
  if (type === "AllBlocksCleared") return { kind: "cleared" };
  const hashes = listOf(event["block_hashes"], hashOf);
  if (hashes === null) return null;
  const medium = typeof event["medium"] === "string" ? event["medium"] : null;
  if (type === "BlockRemoved") return { kind: "removed", hashes, medium };
  const tokens = listOf(event["token_ids"], tokenOf);
  const blockTokens = tokenOf(event["block_size"]);
  if (type !== "BlockStored" || tokens === null || !blockTokens || blockTokens > MOST_BLOCK_TOKENS) return null;
  const parent = event["parent_block_hash"];
  const lora = typeof event["lora_name"] === "string" ? event["lora_name"] : null;
  const extra = Array.isArray(event["extra_keys"]) ? (event["extra_keys"] as unknown[]) : [];
  const before = parent == null ? null : hashOf(parent);
  if (parent != null && before === null) return null;
  return {
    kind: "stored",
    hashes,
    parent: before,
    tokens,
    blockTokens,
    apart: hashes.map((_, at) => apartBy(extra[at], at === 0 && parent == null ? lora : null)),
    medium: medium ?? DEFAULT_MEDIUM,
  };
}

/** What keeps a block apart, in one form: its extra keys; where there are none, its adapter. */
export function apartBy(extra: unknown, lora: string | null = null): string | null {
  if (Array.isArray(extra) && extra.length > 0)
    return JSON.stringify(extra, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  return lora === null ? null : JSON.stringify([lora]);
}

/** Null where it is no list, or anything in it is not understood. */
function listOf<T>(given: unknown, read: (value: unknown) => T | null): readonly T[] | null {
  if (!Array.isArray(given) || given.length > MOST_ITEMS) return null;
  const values: T[] = [];
  for (const item of given as unknown[]) {
    const value = read(item);
    if (value === null) return null;
    values.push(value);
  }
  return values;
}

function hashOf(value: unknown): string | null {
  if (typeof value === "bigint" || Number.isInteger(value)) return String(value);
  return value instanceof Uint8Array && value.length > 0 ? Buffer.from(value).toString("base64url") : null;
}

function tokenOf(value: unknown): number | null {
  const number = typeof value === "bigint" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : null;
}
