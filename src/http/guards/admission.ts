import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { problem } from "../problems/problem.js";
import { RETRY_SOON } from "../problems/problem-shapes.js";
import { ALWAYS_ANSWERED, cutTarget, isOpenAiPath } from "../requests/request.js";
import { SECURITY_HEADERS } from "./guard.js";

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
    if (isOpenAiPath(pathOf(request))) {
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
  lag: JSON.stringify(problem(503, "overloaded: the request waited longer than MEMSTEM_MAX_LAG_MS")),
  pending: JSON.stringify(problem(503, "overloaded: MEMSTEM_MAX_PENDING requests are waiting")),
} as const;
const HEAD = { ...Object.fromEntries(SECURITY_HEADERS), ...RETRY_SOON, "content-type": "application/problem+json" };

function pathOf({ url = "" }: IncomingMessage): string {
  return cutTarget(url).path;
}
