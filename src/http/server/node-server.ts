import { createServer, type IncomingMessage, type RequestListener, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { inCallersTrace } from "../../service/base/spans.js";
import { SECURITY_HEADERS } from "../guards/guard.js";
import { problem, problemResponse, RETRY_SOON } from "../problems/problem.js";
import { ALWAYS_ANSWERED, cutTarget, type HttpEnvironment, isOpenAiPath, pathAfterBase } from "../requests/request.js";

/** Milliseconds that a request's head may take. Until it is read, a request does not count as in flight. */
const HEADERS_TIMEOUT_MS = 60_000;

/** For a target and host that Hono cannot parse as a URL. */
const UNREADABLE = problem(400, "the request target or the host is not valid");

/** The app, and what Node's server puts in front of it. */
export interface HttpSurface {
  readonly app: OpenAPIHono<HttpEnvironment>;
  /** Decides when a request reaches the app. */
  readonly admission: Admission;
  /** Call it with each sample of the event loop's delay, in milliseconds. */
  readonly onDelayed: (ms: number) => void;
  /** Milliseconds that a client may leave an answer unread. */
  readonly answerTimeoutMs: number;
}

/** The app on Node's HTTP server, which does not listen yet. `hostname`: where it will. */
export function nodeServer({ app, admission, answerTimeoutMs }: HttpSurface, hostname: string): Server {
  const adapted = getRequestListener(app.fetch, { hostname, errorHandler: () => problemResponse(UNREADABLE) });
  const listener = admission.before((incoming, outgoing) =>
    inCallersTrace(incoming.headers, () => adapted(incoming, outgoing)),
  );
  const queued = new PipelinedResponses();
  // The app limits the time of a body, by its length.
  const options = { ServerResponse: CorkedResponse, requestTimeout: 0, headersTimeout: HEADERS_TIMEOUT_MS };
  const server = createServer(options, (incoming, outgoing) => {
    queued.watch(incoming, outgoing);
    outgoing.setTimeout(answerTimeoutMs).on("timeout", (socket: Socket) => {
      // With nothing to write, the answer waits for the engine, not for the client.
      if (socket.writableLength > 0) socket.destroy();
    });
    listener(incoming, outgoing);
  });
  server.on("connection", () => admission.connected());
  return server;
}

/**
 * A response that is corked until the end of the tick: its head is sent together with the part of the body that is ready, in one write
 * instead of two. A head whose body is not ready is sent alone.
 */
export class CorkedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override flushHeaders(): void {
    this.cork();
    // After pending microtasks, and before the event loop's next phase.
    queueMicrotask(() => process.nextTick(() => this.uncork()));
    super.flushHeaders();
  }
}

/**
 * Responses queued after another one on their connection: those of pipelined requests (RFC 9112 §9.3.2). When a connection closes, Node
 * emits "close" on its current response only, so the queued ones would never end. This ends them.
 */
class PipelinedResponses {
  /** By connection; bounded by the requests in flight. */
  readonly #queued = new WeakMap<Socket, Set<ServerResponse>>();

  /** Call it for every request, first. Ends the response when its connection closes. */
  watch({ socket }: IncomingMessage, outgoing: ServerResponse): void {
    if (outgoing.socket !== null) return;
    const queued = this.#queued.get(socket) ?? this.#watched(socket);
    queued.add(outgoing);
    outgoing.once("socket", () => queued.delete(outgoing));
  }

  #watched(socket: Socket): Set<ServerResponse> {
    const queued = new Set<ServerResponse>();
    this.#queued.set(socket, queued);
    socket.once("close", () => {
      for (const outgoing of queued) outgoing.destroy().emit("close");
    });
    return queued;
  }
}

/** Milliseconds per event-loop tick in which requests are admitted. Requests of one tick share a transaction. */
const TICK_MS = 20;
/** Most consecutive ticks without admission, while each accepts a new connection. */
const MOST_TICKS_FOR_CONNECTIONS = 64;
/** A request that waited too long is rejected only once the queue has been non-empty for this many times as long: a burst is served. */
const BURST = 2;

/** A request that was rejected with 503. */
export interface RejectedRequest {
  readonly reason: "lag" | "pending";
  readonly method: string;
  /** Milliseconds that it waited. */
  readonly ms: number;
}

/** What admission needs. */
export interface AdmissionParts {
  /** Milliseconds that a request may wait for admission. */
  readonly maxLagMs: number;
  /** Most requests that wait at once. */
  readonly maxWaiting: number;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
  readonly onRejected: (rejected: RejectedRequest) => void;
  /** Called with the wait of each request that was queued, in milliseconds. */
  readonly onWaited: (ms: number) => void;
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly listener: RequestListener;
  /** When it arrived. */
  readonly since: number;
}

/**
 * Admits requests in order of arrival. Node handles every request that is ready in one tick of its event loop, and accepts one new
 * connection per tick: with long ticks, connections wait in the kernel's backlog, where they cannot be rejected, and are dropped once it
 * is full. So a tick admits what fits into {@link TICK_MS}, the rest waits here, and connections are accepted in between. Under overload
 * requests that waited too long are rejected with 503, before any work was done for them. A chat is not rejected: it goes to its engine
 * unmodified, neither composed nor stored.
 */
export class Admission {
  #waiting: Waiting[] = [];
  /** Entries at the front of `#waiting` that are gone. */
  #done = 0;
  /** Since when the queue has been non-empty. */
  #standingSince = 0;
  /** When this tick began to admit; null where it did not yet. */
  #tickStart: number | null = null;
  #isScheduled = false;
  #connections = 0;
  #ticksForConnections = 0;
  readonly #shed = new WeakSet<object>();
  /** Arrival of queued requests. */
  readonly #cameAt = new WeakMap<object, number>();

  constructor(private readonly parts: AdmissionParts) {}

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#done;
  }

  /** Whether a chat is to go to its engine unmodified. */
  isShed(request: object): boolean {
    return this.#shed.has(request);
  }

  /** When a queued request arrived; undefined for one that was admitted at once. */
  cameAt(request: object): number | undefined {
    return this.#cameAt.get(request);
  }

  /** Call it for every new connection. */
  connected(): void {
    this.#connections++;
  }

  /** The listener that admits before the given one. */
  before(listener: RequestListener): RequestListener {
    return (request, response) => {
      if (ALWAYS_ANSWERED.has(pathOf(request))) return listener(request, response);
      const now = this.parts.clock();
      const came = { request, response, listener, since: now };
      if (this.waiting >= this.parts.maxWaiting) return this.#reject(came, "pending");
      if (this.waiting === 0) {
        this.#tickStart ??= now;
        this.#scheduleTick();
        if (now - this.#tickStart <= TICK_MS) return listener(request, response);
        this.#standingSince = now;
      }
      this.#waiting.push(came);
      return undefined;
    };
  }

  #scheduleTick(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#nextTick);
  }

  readonly #nextTick = (): void => {
    this.#isScheduled = false;
    this.#tickStart = null;
    if (this.waiting === 0) return;
    if (this.#connections > 0 && this.#ticksForConnections < MOST_TICKS_FOR_CONNECTIONS) {
      this.#ticksForConnections++;
      this.#scheduleTick();
    } else {
      this.#ticksForConnections = 0;
      this.#tickStart = this.parts.clock();
      this.#admit();
    }
    this.#connections = 0;
  };

  readonly #admit = (): void => {
    const { clock, maxLagMs, onWaited } = this.parts;
    for (let next = this.#first(); next !== null; next = this.#first()) {
      const now = clock();
      if (now - (this.#tickStart ?? now) > TICK_MS) break;
      this.#remove();
      const waited = now - next.since;
      if (next.request.socket.destroyed) continue;
      if (waited > maxLagMs && now - this.#standingSince > BURST * maxLagMs) this.#reject(next, "lag");
      else {
        onWaited(waited);
        this.#cameAt.set(next.request, next.since);
        next.listener(next.request, next.response);
        // After the listener's own microtasks and ticks.
        queueMicrotask(() => process.nextTick(this.#admit));
        return;
      }
    }
    this.#scheduleTick();
  };

  #first(): Waiting | null {
    return this.#waiting[this.#done] ?? null;
  }

  #remove(): void {
    this.#done++;
    if (this.#done < this.#waiting.length / 2) return;
    this.#waiting = this.#waiting.slice(this.#done);
    this.#done = 0;
  }

  #reject({ request, response, listener, since }: Waiting, reason: RejectedRequest["reason"]): void {
    if (isOpenAiPath(pathAfterBase(pathOf(request)))) {
      this.#shed.add(request);
      listener(request, response);
      return;
    }
    const { method = "" } = request;
    this.parts.onRejected({ reason, method, ms: this.parts.clock() - since });
    response.writeHead(503, HEAD).end(BODIES[reason]);
  }
}

const BODIES = {
  lag: JSON.stringify(problem(503, "overloaded: the request waited longer than MEMPREFIX_MAX_LAG_MS")),
  pending: JSON.stringify(problem(503, "overloaded: MEMPREFIX_MAX_PENDING requests are waiting")),
} as const;
const HEAD = { ...Object.fromEntries(SECURITY_HEADERS), ...RETRY_SOON, "content-type": "application/problem+json" };

function pathOf({ url = "" }: IncomingMessage): string {
  return cutTarget(url).path;
}
