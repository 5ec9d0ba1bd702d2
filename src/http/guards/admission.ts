import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { problem } from "../problems/problem.js";
import { RETRY_SOON } from "../problems/refusal.js";
import { ALWAYS_ANSWERED, cutTarget, isOpenAiPath } from "../requests/paths.js";
import { SECURITY_HEADERS } from "./security-headers.js";

/** Milliseconds that one turn of the event loop lets requests in for. What shares a turn shares a transaction, too. */
const TURN_MS = 20;
/** Most turns of the event loop in a row that let nobody in, for as long as each brings a new connection. */
const MOST_TURNS_FOR_CONNECTIONS = 64;
/** A request that waited for too long is turned away once others have been waiting for so many times as long: a burst is served. */
const BURST = 2;

/** A request that was not let in, and answered with 503. */
export interface TurnedAway {
  readonly reason: "lag" | "pending";
  readonly method: string;
  /** Milliseconds that it waited. */
  readonly ms: number;
}

/** What decides who is let in. */
export interface AdmissionParts {
  /** Milliseconds that a request may wait to be let in. */
  readonly maxLagMs: number;
  /** Most requests that wait at once. */
  readonly maxWaiting: number;
  /** Milliseconds, monotonic. */
  readonly clock: () => number;
  readonly onTurnedAway: (refused: TurnedAway) => void;
  /** Told how long one that had to wait did, in milliseconds. */
  readonly onWaited: (ms: number) => void;
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly listener: RequestListener;
  /** When it came. */
  readonly since: number;
}

/**
 * Lets requests in, in the order in which they came. Node would take up all that came together in one turn of its event loop, and accepts
 * a single new connection in each: where a turn is long, connections wait in the kernel, where nobody can turn them away, and are
 * lost when its queue is full. So a turn lets in what it has time for, the rest waits here, and connections are accepted in
 * between. When more come than can be served, those that waited for too long are turned away with 503, which costs little: nothing was
 * done for them yet. A chat is not turned away: it goes on as it came, without being planned and stored. Its engine would have had it
 * without memstem.
 */
export class Admission {
  #waiting: Waiting[] = [];
  /** Of `#waiting`, those at the front that wait no longer. */
  #done = 0;
  /** Since when somebody has been waiting all the time. */
  #standingSince = 0;
  /** When this turn began to let requests in; null where it did not yet. */
  #turn: number | null = null;
  #isScheduled = false;
  #connections = 0;
  #turnsForConnections = 0;
  readonly #shed = new WeakSet<object>();
  /** Of requests that had to wait. */
  readonly #cameAt = new WeakMap<object, number>();

  constructor(private readonly parts: AdmissionParts) {}

  /** Requests that wait now. */
  get waiting(): number {
    return this.#waiting.length - this.#done;
  }

  /** Whether a chat is to go on as it came. */
  isShed(request: object): boolean {
    return this.#shed.has(request);
  }

  /** When a request came that had to wait; undefined for one that was let in at once. */
  cameAt(request: object): number | undefined {
    return this.#cameAt.get(request);
  }

  /** To be called with every new connection. */
  connected(): void {
    this.#connections++;
  }

  /** What is to be called with every request in place of its listener. */
  before(listener: RequestListener): RequestListener {
    return (request, response) => {
      if (ALWAYS_ANSWERED.has(pathOf(request))) return listener(request, response);
      const now = this.parts.clock();
      const came = { request, response, listener, since: now };
      if (this.waiting >= this.parts.maxWaiting) return this.#turnAway(came, "pending");
      if (this.waiting === 0) {
        this.#turn ??= now;
        this.#scheduleTurn();
        if (now - this.#turn <= TURN_MS) return listener(request, response);
        this.#standingSince = now;
      }
      this.#waiting.push(came);
      return undefined;
    };
  }

  #scheduleTurn(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#isScheduled = false;
    this.#turn = null;
    if (this.waiting === 0) return;
    if (this.#connections > 0 && this.#turnsForConnections < MOST_TURNS_FOR_CONNECTIONS) {
      this.#turnsForConnections++;
      this.#scheduleTurn();
    } else {
      this.#turnsForConnections = 0;
      this.#turn = this.parts.clock();
      this.#letIn();
    }
    this.#connections = 0;
  };

  readonly #letIn = (): void => {
    const { clock, maxLagMs, onWaited } = this.parts;
    for (let next = this.#first(); next !== null; next = this.#first()) {
      const now = clock();
      if (now - (this.#turn ?? now) > TURN_MS) break;
      this.#remove();
      const waited = now - next.since;
      if (next.request.socket.destroyed) continue;
      if (waited > maxLagMs && now - this.#standingSince > BURST * maxLagMs) this.#turnAway(next, "lag");
      else {
        onWaited(waited);
        this.#cameAt.set(next.request, next.since);
        next.listener(next.request, next.response);
        // Behind what that does at once.
        queueMicrotask(() => process.nextTick(this.#letIn));
        return;
      }
    }
    this.#scheduleTurn();
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

  #turnAway({ request, response, listener, since }: Waiting, reason: TurnedAway["reason"]): void {
    if (isOpenAiPath(pathOf(request))) {
      this.#shed.add(request);
      listener(request, response);
      return;
    }
    const { method = "" } = request;
    this.parts.onTurnedAway({ reason, method, ms: this.parts.clock() - since });
    response.writeHead(503, HEAD).end(BODIES[reason]);
  }
}

const BODIES = {
  lag: JSON.stringify(problem(503, "more requests come than can be served: MEMSTEM_MAX_LAG_MS")),
  pending: JSON.stringify(problem(503, "more requests wait than may: MEMSTEM_MAX_PENDING")),
} as const;
const HEAD = { ...Object.fromEntries(SECURITY_HEADERS), ...RETRY_SOON, "content-type": "application/problem+json" };

function pathOf({ url = "" }: IncomingMessage): string {
  return cutTarget(url).path;
}
