import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { TenantUsage, UsageChanges } from "../../service/usage/tenant-usage.js";
import { operation } from "../contracts/operations.js";
import * as shown from "../contracts/usage-answers.js";
import { shownNote, shownRow } from "../contracts/usage-answers.js";
import * as wire from "../contracts/usage-contract.js";
import { usageEvents, usageEventsQuery, usageRequestQuery, usageRequestResult } from "../contracts/usage-contract.js";
import { writerOf } from "../contracts/wire-form.js";
import { ManyListenersError, UsageOffError } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";
import { addGet, addPost, optionsIn, validated } from "./json-route.js";

/** What the routes need. */
export interface UsageParts {
  /** Whether texts of memories and messages may be shown. */
  readonly hasText: boolean;
  readonly isStopping: () => boolean;
}

/** Adds `/usage/…`: what the caller's tenant's prompts cost, and why they missed. */
export function addUsageRoutes(app: OpenAPIHono<HttpEnvironment>, { hasText, isStopping }: UsageParts): void {
  const { usageSummaryQuery, usageSummaryResult, usageMissesQuery, usageMissesResult } = wire;
  addGet(app, "getUsageSummary", "/usage/summary", usageSummaryQuery, usageSummaryResult, async (view, c) => {
    const { usage, priced } = usageOf(c);
    return shown.usageSummary(view.window, await usage.summary(view), priced, c.get("memprefix").cacheState);
  });
  addGet(app, "getUsageMisses", "/usage/misses", usageMissesQuery, usageMissesResult, async (view, c) => {
    const { usage, priced } = usageOf(c);
    return shown.usageMisses(view.window, await usage.misses(view), priced);
  });
  const { usageRequestsQuery, usageRequestsResult } = wire;
  addGet(
    app,
    "listUsageRequests",
    "/usage/requests",
    usageRequestsQuery,
    usageRequestsResult,
    async ({ cursor, limit, ...filter }, c) =>
      shown.usageRequests(await usageOf(c).usage.prompts(filter, shown.pageBefore(cursor), limit)),
  );
  addGet(
    app,
    "getUsageRequest",
    "/usage/request",
    usageRequestQuery,
    usageRequestResult,
    async ({ userId, agentId = null, requestId }, c) => {
      const kept = await usageOf(c).usage.prompt(userId, agentId, requestId);
      return shown.usageRequest(kept, await c.get("memprefix").show(userId, agentId, requestId, hasText), hasText);
    },
  );
  const { usageUsersQuery, usageUsersResult, usageConversationsQuery, usageConversationsResult } = wire;
  addGet(app, "listUsageUsers", "/usage/users", usageUsersQuery, usageUsersResult, async ({ order, limit }, c) => {
    const { usage, priced } = usageOf(c);
    return { users: (await usage.users(order, limit)).map((user) => shown.shownReuse(user, priced)) };
  });
  addGet(
    app,
    "listUsageConversations",
    "/usage/conversations",
    usageConversationsQuery,
    usageConversationsResult,
    async ({ order, limit, ...of }, c) => {
      const { usage, priced } = usageOf(c);
      const found = await usage.conversations(of, order, limit);
      return { conversations: found.map((conversation) => shown.shownReuse(conversation, priced)) };
    },
  );
  addGet(
    app,
    "getUsageConversation",
    "/usage/conversation",
    wire.usageConversationQuery,
    wire.usageConversationResult,
    async ({ userId, agentId = null, conversationId, cursor, limit }, c) => {
      const { usage, priced } = usageOf(c);
      const before = shown.pageBefore(cursor);
      return shown.usageConversation(await usage.conversation(userId, agentId, conversationId, before, limit), priced);
    },
  );
  addPost(
    app,
    "addUsageNote",
    "/usage/notes",
    wire.noteBody,
    wire.usageNote,
    async ({ kind, label, at = null, model = null }, c) =>
      shown.shownNote(await usageOf(c).usage.note({ kind, label, at, model })),
    201,
  );
  addUsageEvents(app, { usageOf: (c) => usageOf(c).usage, isStopping });
}

/** The usage of the caller's tenant. Throws {@link UsageOffError}. */
function usageOf(c: Context<HttpEnvironment>): { readonly usage: TenantUsage; readonly priced: shown.Priced } {
  const { usage, recorded } = c.get("memprefix");
  if (usage === null || recorded === null) throw new UsageOffError();
  return { usage, priced: recorded };
}

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
function addUsageEvents(app: OpenAPIHono<HttpEnvironment>, { usageOf, isStopping }: EventParts): void {
  app.openAPIRegistry.registerPath(
    operation("streamUsageEvents", {
      method: "get",
      path: PATH,
      query: usageEventsQuery,
      says: "A stream of events, at most four a second and those of notes. It begins with a comment, and is of what is recorded from then on.",
      answer: { "text/event-stream": usageEvents },
    }),
  );
  const written = new WrittenEvents();
  app.get(PATH, async (c) => {
    const { limit, ...filter } = optionsIn(await validated(usageEventsQuery, c.req.query()));
    const stream = new EventStream();
    const tell = (changes: UsageChanges) => stream.send(written.of(changes), countOf(changes));
    const stop = await usageOf(c).listen(filter, limit, { tell, end: () => stream.end() });
    if (stop === null) throw new ManyListenersError();
    stream.begin(isStopping, stop);
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
    return new Response(stream.body, { headers });
  });
}

const written = writerOf(usageEvents);

/** JSON has no line breaks of its own. */
function eventText(event: Parameters<typeof written>[0]): string {
  return Object.entries(written(event))
    .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    .join("");
}

/** What is sent of changes, made once for all who are sent the same: it goes when they do. */
class WrittenEvents {
  readonly #encoder = new TextEncoder();
  readonly #written = new WeakMap<UsageChanges, Uint8Array>();

  of(changes: UsageChanges): Uint8Array {
    const known = this.#written.get(changes);
    if (known !== undefined) return known;
    const { rows, leftOut: more, notes } = changes;
    const events = [
      ...(rows.length + more === 0 ? [] : [{ requests: { rows: rows.map(shownRow), more } }]),
      ...notes.map((note) => ({ note: shownNote(note) })),
    ];
    const bytes = this.#encoder.encode(events.map(eventText).join(""));
    this.#written.set(changes, bytes);
    return bytes;
  }
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
          this.#write(this.#encoder.encode(": memprefix\n\n"));
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

  /** `count`: of its prompts and notes. */
  send(event: Uint8Array, count: number): void {
    this.#tellDropped();
    if (!this.#write(event)) this.#dropped += count;
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return;
    if (this.#write(this.#encoder.encode(eventText({ dropped: { count: this.#dropped } })))) this.#dropped = 0;
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
