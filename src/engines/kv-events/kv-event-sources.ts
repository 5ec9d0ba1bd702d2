import { z } from "zod";
import type { KvEventSource } from "./kv-event-stream.js";

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
