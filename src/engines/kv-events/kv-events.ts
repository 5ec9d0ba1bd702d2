/*
 * Prefix cache events of vLLM and SGLang over ZeroMQ.
 * Enters: publishers' addresses. Leaves: batches of `KvEvent` in order, and notice of lost ones.
 */

import type { Unpackr } from "msgpackr";
import type * as ZeroMq from "zeromq";
import { z } from "zod";
import { type JsonObject, listIn, record } from "../../core/text/json.js";
import type { KvEvent } from "./resident-blocks.js";

/** Where an engine publishes its events. `endpoint` is ZeroMQ's: `tcp://127.0.0.1:5557`. */
export interface KvEventSource {
  readonly endpoint: string;
  /** Where missed batches are sent again; null: nowhere. */
  readonly replay: string | null;
}

export interface KvEventSink {
  take(events: readonly KvEvent[]): void;
  /** Batches were missed: what is cached is unknown. */
  lost(): void;
  /** The publisher restarted: nothing is cached. */
  began(): void;
}

export type Heartbeat = Readonly<Pick<ZeroMq.Subscriber, "heartbeatInterval" | "heartbeatTimeout">>;

export interface KvEventPackages {
  readonly zeromq: Pick<typeof ZeroMq, "Subscriber" | "Dealer">;
  readonly unpackr: Pick<Unpackr, "unpack">;
}

/** A larger message closes the connection, which is then reopened. */
const MOST_BYTES = 256 * 1024 * 1024;
/** In milliseconds. A machine that loses its power closes no connection. */
const HEARTBEAT: Heartbeat = { heartbeatInterval: 10_000, heartbeatTimeout: 30_000 };
const REPLAY_TIMEOUT_MS = 5_000;
/** Nothing new is read during a replay. */
const MOST_REPLAY_MS = 60_000;
const NUMBER_BYTES = 8;
const WHERE_ENGINES_LISTEN =
  "vLLM listens where its endpoint is tcp://*:PORT; to one with a host it connects, and nobody hears it";
const END = 0xffff_ffff_ffff_ffffn;

/** `time`: seconds, by the publisher's clock. */
interface Message {
  readonly number: bigint;
  readonly time: number;
  readonly events: readonly KvEvent[];
}

/** Follows an engine's events until the signal aborts, and never rejects. Reconnects, and requests missed batches again. */
export async function followKvEvents(
  { endpoint, replay }: KvEventSource,
  sink: KvEventSink,
  { zeromq, unpackr }: KvEventPackages,
  signal: AbortSignal,
  onFault: (error: unknown) => void,
  heartbeat: Heartbeat = HEARTBEAT,
): Promise<void> {
  const socket = new zeromq.Subscriber({ maxMessageSize: MOST_BYTES, linger: 0, ...heartbeat });
  const close = () => socket.close();
  signal.addEventListener("abort", close, { once: true });
  let next: bigint | null = null;
  // The next publisher at this address may be another engine or a restarted one, whatever its numbers are.
  socket.events.on("disconnect", () => {
    next = null;
    sink.lost();
  });
  let wasRefused = false;
  socket.events.on("connect:retry", () => {
    if (!wasRefused)
      onFault(new Error(`nobody publishes at ${endpoint}, which is tried again: ${WHERE_ENGINES_LISTEN}`));
    wasRefused = true;
  });
  let newest = Number.NEGATIVE_INFINITY;
  let wasUnreadable = false;
  const read = (frames: readonly Uint8Array[]): Message | null => {
    const [number, payload] = frames.slice(-2);
    if (frames.length < 2 || number?.length !== NUMBER_BYTES || payload === undefined) return null;
    const decoded: unknown = unpackr.unpack(payload);
    const events = readKvEvents(decoded);
    const time = Array.isArray(decoded) ? Number(decoded[0]) : Number.NaN;
    return events === null ? null : { number: Buffer.from(number).readBigUInt64BE(), time, events };
  };
  const accept = ({ number, time, events }: Message) => {
    if (next !== null && number < next) return;
    if (next === null && number === 0n) sink.began();
    else if (next === null || number > next) sink.lost();
    next = number + 1n;
    newest = time;
    sink.take(events);
  };
  const catchUp = async (from: bigint) => {
    for await (const frames of replay === null ? [] : replayed(zeromq, replay, from, signal)) {
      const message = read(frames);
      if (message !== null) accept(message);
    }
  };
  try {
    socket.connect(endpoint);
    socket.subscribe();
    await catchUp(0n).catch(onFault);
    for await (const frames of socket) {
      if (signal.aborted) break;
      try {
        const message = read(frames);
        if (message === null) throw new Error(`${endpoint} published something that is no batch of events`);
        const isBefore = next !== null && message.number < next;
        if (isBefore && message.time <= newest) continue;
        // Numbers begin again with the engine.
        if (isBefore) next = null;
        const isGap = message.number > (next ?? 0n);
        if (isGap) await catchUp(next ?? 0n).catch(onFault);
        accept(message);
      } catch (error) {
        sink.lost();
        if (!wasUnreadable) onFault(error);
        wasUnreadable = true;
      }
    }
  } catch (error) {
    if (!signal.aborted) onFault(error);
  } finally {
    signal.removeEventListener("abort", close);
    if (!socket.closed) socket.close();
    sink.lost();
  }
}

async function* replayed(
  zeromq: KvEventPackages["zeromq"],
  address: string,
  from: bigint,
  signal: AbortSignal,
): AsyncGenerator<readonly Uint8Array[]> {
  const socket = new zeromq.Dealer({ maxMessageSize: MOST_BYTES, linger: 0, receiveTimeout: REPLAY_TIMEOUT_MS });
  try {
    socket.connect(address);
    const number = Buffer.alloc(NUMBER_BYTES);
    number.writeBigUInt64BE(from);
    await socket.send([Buffer.alloc(0), number]);
    const end = performance.now() + MOST_REPLAY_MS;
    while (!signal.aborted) {
      if (performance.now() > end) throw new Error(`${address} does not come to the end of what it sends again`);
      const frames = await socket.receive();
      const last = frames.at(-2);
      if (last?.length === NUMBER_BYTES && last.readBigUInt64BE() === END) return;
      yield frames;
    }
  } finally {
    socket.close();
  }
}

const MOST_ITEMS = 4_000_000;
const MOST_BLOCK_TOKENS = 65_536;
const DEFAULT_MEDIUM = "GPU";

/** Fields of events that are arrays, after the name: vLLM before 0.12, SGLang, relays. */
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
 * Reads `[time, events, …]`; an event is a map or an array whose last fields may be missing. Hashes are 64-bit numbers or bytes. Only the first of
 * several cache groups counts, because prefixes are found by it. Unknown events are left out.
 */
function readKvEvents(decoded: unknown): readonly KvEvent[] | null {
  if (!Array.isArray(decoded) || !Array.isArray(decoded[1])) return null;
  return decoded[1].flatMap((event: unknown) => readEvent(fieldsOf(event)) ?? []);
}

function fieldsOf(event: unknown): JsonObject {
  if (!Array.isArray(event)) return record(event);
  const [type, ...values] = event as unknown[];
  const names = POSITIONS[String(type)] ?? [];
  return { type, ...Object.fromEntries(names.map((name, at) => [name, values[at]])) };
}

function readEvent(event: JsonObject): KvEvent | null {
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
  const extra = listIn(event["extra_keys"]);
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

/** Why blocks with equal tokens are not shared: the block's extra keys, else its adapter. */
export function apartBy(extra: unknown, lora: string | null = null): string | null {
  if (Array.isArray(extra) && extra.length > 0)
    return JSON.stringify(extra, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  return lora === null ? null : JSON.stringify([lora]);
}

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

/** Publishers bind to every address; this stands for the engine's host. */
const ANY_HOST = /^tcp:\/\/(?:\*|0\.0\.0\.0|\[::\])(?=:\d+$)/;
const endpoint = z.string().regex(/^(?:tcp:\/\/(?:\*|[\w.-]+|\[[\da-fA-F:]+\]):\d{1,5}|ipc:\/\/\S+)$/);

const listed = z.record(
  z.string(),
  z.object({
    enable_kv_cache_events: z.boolean().catch(true),
    publisher: z.string().catch("zmq"),
    endpoint,
    replay_endpoint: endpoint.nullish().catch(null),
  }),
);

/** Reads where an engine publishes its events, with its `host` in place of "all addresses". Empty for any other answer. */
export function readKvEventSources(json: unknown, host: string): readonly KvEventSource[] {
  const read = listed.safeParse(json);
  if (!read.success) return [];
  const at = (address: string) => address.replace(ANY_HOST, `tcp://${host}`);
  return Object.values(read.data)
    .filter(({ enable_kv_cache_events: isOn, publisher }) => isOn && publisher === "zmq")
    .map((source) => ({
      endpoint: at(source.endpoint),
      replay: source.replay_endpoint == null ? null : at(source.replay_endpoint),
    }));
}

/** A setting's value: `tcp://host:5557`, or with a replay port, `tcp://host:5557?replay=5558`; several with commas. */
export const kvEventSources = z.string().transform((text, context): readonly KvEventSource[] =>
  text.split(",").map((each) => {
    const [, address = "", , port] = /^\s*([^?\s]+)(\?replay=(\d{1,5}))?\s*$/.exec(each) ?? [];
    if (endpoint.safeParse(address).success && !address.includes("*"))
      return { endpoint: address, replay: port === undefined ? null : address.replace(/\d+$/, port) };
    context.addIssue({
      code: "custom",
      message: "must be addresses such as tcp://127.0.0.1:5557?replay=5558, or auto, or off",
    });
    return { endpoint: "", replay: null };
  }),
);
