import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import { readOptions } from "../../service/fields/read-options.js";
import type { TenantUsage } from "../../service/usage/tenant-usage.js";
import type { UsageChanges } from "../../service/usage/usage-figures.js";
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
        description:
          "A stream of events, at most four a second and those of notes. It begins with a comment, and is of what is recorded from then on.",
        headers: headerReferences(RATE_HEADERS),
        content: { "text/event-stream": { schema: usageEvents } },
      },
      ...problemResponses(events.problems),
    },
  });
  const written = new WrittenEvents();
  app.get(PATH, async (c) => {
    const { limit, user_id, agent_id, conversation_id, ...others } = readOptions(usageEventsQuery, c.req.query());
    const filter = { ...others, userId: user_id, agentId: agent_id, conversationId: conversation_id };
    const stream = new EventStream();
    const tell = (changes: UsageChanges) => stream.send(written.of(changes), countOf(changes));
    const stop = await usageOf(c).listen(filter, limit, { tell, end: () => stream.end() });
    if (stop === null) throw new ManyListenersError();
    stream.begin(isStopping, stop);
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
    return new Response(stream.body, { headers });
  });
}

/** JSON has no line breaks of its own. */
function eventText(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** What is sent of changes, made once for all who are sent the same: it goes when they do. */
class WrittenEvents {
  readonly #encoder = new TextEncoder();
  readonly #written = new WeakMap<UsageChanges, Uint8Array>();

  of(changes: UsageChanges): Uint8Array {
    const known = this.#written.get(changes);
    if (known !== undefined) return known;
    const { rows, leftOut, notes } = changes;
    const prompts = rows.length + leftOut === 0 ? "" : eventText("requests", requestsOf(rows, leftOut));
    const text = `${prompts}${notes.map((note) => eventText("note", writeUsageNote(note))).join("")}`;
    const bytes = this.#encoder.encode(text);
    this.#written.set(changes, bytes);
    return bytes;
  }
}

function requestsOf(rows: UsageChanges["rows"], leftOut: number) {
  return { rows: rows.map(writeUsageRow), more: leftOut };
}

function countOf({ rows, leftOut, notes }: UsageChanges): number {
  return rows.length + leftOut + notes.length;
}

/** A stream that leaves events out where its reader is too slow, and says how many prompts and notes they were. */
class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #onEnd: () => void = () => {};
  #dropped = 0;
  #beats = 0;

  constructor() {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          this.#write(this.#encoder.encode(": memstem\n\n"));
        },
        cancel: () => this.end(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_WAITING_BYTES }),
    );
  }

  begin(isStopping: () => boolean, onEnd: () => void): void {
    if (this.#controller === null) {
      onEnd();
      return;
    }
    this.#onEnd = onEnd;
    this.#timer = setInterval(() => {
      this.#tellDropped();
      if (isStopping()) this.end();
      else if (++this.#beats % BEATS === 0) this.#write(this.#encoder.encode(": beat\n\n"));
    }, BEAT_MS);
  }

  /** `count`: of the prompts and notes that it tells of. */
  send(event: Uint8Array, count: number): void {
    this.#tellDropped();
    if (!this.#write(event)) this.#dropped += count;
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    if (this.#write(this.#encoder.encode(eventText("dropped", { count: this.#dropped })))) this.#dropped = 0;
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#onEnd();
    try {
      this.#controller?.close();
    } catch {
      // The reader has cancelled it.
    }
    this.#controller = null;
  }

  /** False: too much waits to be read. */
  #write(bytes: Uint8Array): boolean {
    if (this.#controller === null || (this.#controller.desiredSize ?? 0) <= 0) return false;
    this.#controller.enqueue(bytes);
    return true;
  }
}
