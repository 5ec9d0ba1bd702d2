import type { Unpackr } from "msgpackr";
import type * as ZeroMq from "zeromq";
import type { KvEvent } from "../../core/index.js";
import { readKvEvents } from "./kv-event-batch.js";

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

/** The packages that events are read with. */
export interface KvEventPackages {
  readonly zeromq: Pick<typeof ZeroMq, "Subscriber" | "Dealer">;
  readonly unpackr: Pick<Unpackr, "unpack">;
}

/** A larger message ends the connection, which is made again. */
const MOST_BYTES = 256 * 1024 * 1024;
const REPLAY_TIMEOUT_MS = 5_000;
const NUMBER_BYTES = 8;
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
): Promise<void> {
  const socket = new zeromq.Subscriber({ maxMessageSize: MOST_BYTES, linger: 0 });
  const close = () => socket.close();
  signal.addEventListener("abort", close, { once: true });
  let next: bigint | null = null;
  // What answers there next, if anything does, may be another engine, or the same one restarted, whatever its numbers are.
  socket.events.on("disconnect", () => {
    next = null;
    sink.lost();
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
    for await (const frames of replay === null ? [] : replayed(zeromq, replay, from)) {
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
): AsyncGenerator<readonly Uint8Array[]> {
  const socket = new zeromq.Dealer({ maxMessageSize: MOST_BYTES, linger: 0, receiveTimeout: REPLAY_TIMEOUT_MS });
  try {
    socket.connect(address);
    const number = Buffer.alloc(NUMBER_BYTES);
    number.writeBigUInt64BE(from);
    await socket.send([Buffer.alloc(0), number]);
    for (;;) {
      const frames = await socket.receive();
      const last = frames.at(-2);
      if (last?.length === NUMBER_BYTES && last.readBigUInt64BE() === END) return;
      yield frames;
    }
  } finally {
    socket.close();
  }
}
