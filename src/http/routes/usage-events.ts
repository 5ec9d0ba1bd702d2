import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { z } from "zod";
import { readOptions } from "../../service/fields/read-options.js";
import type { TenantUsage } from "../../service/usage/tenant-usage.js";
import type { RecordedEvent } from "../../service/usage/usage-recorder.js";
import { headerReferences, RATE_HEADERS } from "../contracts/openapi-headers.js";
import { problemResponses } from "../contracts/openapi-problems.js";
import { described, OPERATIONS } from "../contracts/operations.js";
import { usageEventsQuery } from "../contracts/usage-contract.js";
import { writeUsageNote, writeUsageRow } from "../contracts/usage-json.js";
import { usageEvents } from "../contracts/usage-request-contract.js";
import { ManyListenersError } from "../problems/usage-off-error.js";
import type { HttpEnvironment } from "../requests/request.js";

/** Bytes that may wait to be read; what comes beyond is left out, and counted. */
const MAX_WAITING_BYTES = 256 * 1024;
/** Milliseconds between comments: connections that nothing is sent over are cut by proxies. Also how soon a stopping service ends it. */
const BEAT_MS = 1_000;
/** Beats between comments. */
const BEATS = 15;

const PATH = "/usage/events";

/** What the route needs. */
interface EventParts {
  readonly usageOf: (c: Context<HttpEnvironment>) => TenantUsage;
  readonly isStopping: () => boolean;
}

type Filter = z.output<typeof usageEventsQuery>;

/** Adds `GET /usage/events`: prompts and notes of the caller's tenant, as server-sent events. */
export function addUsageEvents(app: OpenAPIHono<HttpEnvironment>, { usageOf, isStopping }: EventParts): void {
  const events = OPERATIONS.usageEvents;
  app.openAPIRegistry.registerPath({
    method: "get",
    path: PATH,
    ...described(events),
    request: { query: usageEventsQuery },
    responses: {
      200: {
        description: "A stream of events, about one batch a second. It begins with a comment.",
        headers: headerReferences(RATE_HEADERS),
        content: { "text/event-stream": { schema: usageEvents } },
      },
      ...problemResponses(events.problems),
    },
  });
  app.get(PATH, (c) => {
    const filter = readOptions(usageEventsQuery, c.req.query());
    const usage = usageOf(c);
    const stream = new EventStream(isStopping);
    const stop = usage.listen((event) => {
      const written = writtenEvent(event, filter);
      if (written !== null) stream.send(written);
    });
    if (stop === null) throw new ManyListenersError();
    stream.onEnd(stop);
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
    return new Response(stream.body, { headers });
  });
}

function writtenEvent(event: RecordedEvent, { model, engine, layout }: Filter): string | null {
  if (event.kind === "note") return eventText("note", writeUsageNote(event.note));
  const { row } = event;
  const fits = (model ?? row.model) === row.model && (engine ?? row.engine) === row.engine;
  return fits && (layout ?? row.layout) === row.layout ? eventText("request", writeUsageRow(row)) : null;
}

/** JSON has no line breaks of its own. */
function eventText(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** A stream that leaves events out where its reader is too slow, and says how many. */
class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #dropped = 0;
  #beats = 0;
  #ends: (() => void)[] = [];

  constructor(isStopping: () => boolean) {
    const timer = setInterval(() => {
      if (isStopping()) this.#end();
      else if (++this.#beats % BEATS === 0) this.#write(": beat\n\n");
    }, BEAT_MS);
    this.onEnd(() => clearInterval(timer));
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          this.#write(": memstem\n\n");
        },
        cancel: () => this.#end(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_WAITING_BYTES }),
    );
  }

  onEnd(call: () => void): void {
    this.#ends.push(call);
  }

  send(text: string): void {
    if (this.#dropped > 0 && this.#write(eventText("dropped", { count: this.#dropped }))) this.#dropped = 0;
    if (!this.#write(text)) this.#dropped++;
  }

  /** False: too much waits to be read. */
  #write(text: string): boolean {
    if (this.#controller === null || (this.#controller.desiredSize ?? 0) <= 0) return false;
    this.#controller.enqueue(this.#encoder.encode(text));
    return true;
  }

  #end(): void {
    for (const call of this.#ends.splice(0)) call();
    try {
      this.#controller?.close();
    } catch {
      // The reader has cancelled it.
    }
    this.#controller = null;
  }
}
