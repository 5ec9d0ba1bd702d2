/*
 * What vLLM and SGLang publish of their prefix caches, over ZeroMQ.
 * In: the addresses of their publishers. Out: batches of events (`KvEvent`) in order, and word of those that were lost.
 * The packages `zeromq` and `msgpackr` are loaded by whoever follows events.
 */

import type { Unpackr } from "msgpackr";
import type * as ZeroMq from "zeromq";
import { z } from "zod";
import type { KvEvent } from "../../core/index.js";
import { type JsonObject, listIn, record } from "../../core/text/json.js";

/** Where an engine publishes its events. */
export interface KvEventSource {
  /** As ZeroMQ takes it: `tcp://127.0.0.1:5557`. */
  readonly endpoint: string;
  /** Where batches that were missed are sent again; null: nowhere. */
  readonly replay: string | null;
}

/** Takes what a publisher says, in order. */
export interface KvEventSink {
  take(events: readonly KvEvent[]): void;
  /** Batches were missed: what is cached is not known any more. */
  lost(): void;
  /** The publisher restarted: nothing is cached. */
  began(): void;
}

/** After how long a publisher that answers no heartbeat is lost, as ZeroMQ takes it. */
export type Heartbeat = Readonly<Pick<ZeroMq.Subscriber, "heartbeatInterval" | "heartbeatTimeout">>;

/** The packages that events are read with. */
export interface KvEventPackages {
  readonly zeromq: Pick<typeof ZeroMq, "Subscriber" | "Dealer">;
  readonly unpackr: Pick<Unpackr, "unpack">;
}

/** A larger message ends the connection, which is made again. */
const MOST_BYTES = 256 * 1024 * 1024;
/** A publisher that is silent is asked for a sign of life, in milliseconds: a machine that loses its power closes no connection. */
const HEARTBEAT: Heartbeat = { heartbeatInterval: 10_000, heartbeatTimeout: 30_000 };
const REPLAY_TIMEOUT_MS = 5_000;
/** How long a replay may take in all: meanwhile nothing new is read. */
const MOST_REPLAY_MS = 60_000;
const NUMBER_BYTES = 8;
const WHERE_ENGINES_LISTEN =
  "vLLM listens where its endpoint is tcp://*:PORT; to one with a host it connects, and nobody hears it";
/** Number of the message that ends a replay. */
const END = 0xffff_ffff_ffff_ffffn;

/** A message: a number, in order, and a batch of events. */
interface Message {
  readonly number: bigint;
  /** Seconds, by the publisher's clock. */
  readonly time: number;
  readonly events: readonly KvEvent[];
}

/**
 * Follows an engine's events until the signal aborts. Connects again by itself; what was missed is asked for again. Resolves when it has ended;
 * never rejects.
 *
 * @param onFault called with what is no event, the first time, and what goes wrong otherwise
 */
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
  // What answers there next, if anything does, may be another engine, or the same one restarted, whatever its numbers are.
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
  /** Takes what was not taken before, and says where it does not follow what was. */
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
        // Sent again, or seen in a replay already.
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

/** The messages from a number on that a publisher still has. */
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

/** A dedicated name for "wherever the engine is": publishers bind to every address. */
const ANY_HOST = /^tcp:\/\/(?:\*|0\.0\.0\.0|\[::\])(?=:\d+$)/;
const endpoint = z.string().regex(/^(?:tcp:\/\/(?:\*|[\w.-]+|\[[\da-fA-F:]+\]):\d{1,5}|ipc:\/\/\S+)$/);

/** An answer of vLLM's `GET /kv_event_sources`: by data parallel rank. */
const listed = z.record(
  z.string(),
  z.object({
    enable_kv_cache_events: z.boolean().catch(true),
    publisher: z.string().catch("zmq"),
    endpoint,
    replay_endpoint: endpoint.nullish().catch(null),
  }),
);

/**
 * Reads where an engine says that it publishes its events.
 *
 * @param host the engine's own, in place of "all addresses"
 * @returns none where it is no such answer
 */
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

/** A list of publishers as a setting gives it: `tcp://host:5557`, or with where lost events are sent again, `tcp://host:5557?replay=5558`. */
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
