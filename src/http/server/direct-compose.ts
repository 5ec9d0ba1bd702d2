import type { IncomingMessage, ServerResponse } from "node:http";
import type { ComposeAnswer } from "../../service/base/call-types.js";
import { composeBodyWithNulls, readCompose, writeCompose } from "../contracts/compose-contract.js";
import { type BodyLimits, readBody } from "../guards/body.js";
import type { Guard } from "../guards/guard.js";
import { safeJson } from "../guards/safe-input.js";
import { SECURITY_HEADERS } from "../guards/security-headers.js";
import { notJson, problemResponse } from "../problems/problem.js";
import {
  COMPOSE_PATH,
  type ComposedEntry,
  type GuardedRequest,
  type HttpEnvironment,
  type RequestLog,
  UNROUTED,
} from "../requests/request.js";
import { validated } from "../routes/json-route.js";

/** What the direct route shares with the app. */
export interface DirectComposeParts {
  /** In the app's order. */
  readonly guards: readonly Guard[];
  readonly body: BodyLimits;
  readonly isStopping: () => boolean;
  /** When a request arrived, in milliseconds. */
  readonly arrivedAt: (incoming: IncomingMessage) => number;
  readonly clock: () => number;
  /** The answer to what a guard or the service threw. */
  readonly failed: (request: GuardedRequest, error: unknown) => Response;
  /** Called once per request, before its answer is sent. */
  readonly answered: (entry: RequestLog) => void;
  /** Called with internal faults. */
  readonly onFault: (error: unknown) => void;
}

/** How a request is answered: with JSON and 200, or otherwise. */
interface DirectAnswer {
  readonly route: string;
  readonly body: string | Response;
  readonly composed?: ComposedEntry;
}

/** A host that Hono's adapter takes as it is. */
const PLAIN_HOST = /^(?:[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?|(?:127\.0\.0\.1|localhost):6[0-4]\d{3})$/;
const PLAIN_TYPE = /^application\/json(?:; ?charset=utf-8)?$/;

/** Whether a request is a compose in its plain form: no query, and a host and content type that need no reading. */
export function isPlainCompose(incoming: IncomingMessage): boolean {
  return (
    incoming.method === "POST" &&
    incoming.url === COMPOSE_PATH &&
    PLAIN_HOST.test(incoming.headers.host ?? "") &&
    PLAIN_TYPE.test(headerOf(incoming, "content-type") ?? "")
  );
}

/**
 * `POST /compose` on Node's own request and response: the same guards, contract and problems as the app's route, without Hono's objects
 * and middleware, which take a sixth of a compose. Serves the plain form only; every other one is the app's.
 */
export class DirectCompose {
  constructor(private readonly parts: DirectComposeParts) {}

  /**
   * Serves a request for which {@link isPlainCompose} holds. Does not reject.
   *
   * @param send sends an answer other than a prompt
   */
  async serve(incoming: IncomingMessage, outgoing: ServerResponse, send: (answer: Response) => void): Promise<void> {
    try {
      await this.#serve(incoming, outgoing, send);
    } catch (error) {
      outgoing.destroy();
      this.parts.onFault(error);
    }
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse, send: (answer: Response) => void): Promise<void> {
    const { arrivedAt, clock, answered, isStopping } = this.parts;
    const start = arrivedAt(incoming);
    const request = new DirectRequest(incoming, outgoing);
    const { route, body, composed } = await this.#answer(request, incoming);
    const status = typeof body === "string" ? 200 : body.status;
    answered({ method: "POST", route, status, ms: clock() - start, ...composed });
    if (isStopping()) request.headers.push(["connection", "close"]);
    if (typeof body === "string") {
      const length = Buffer.byteLength(body);
      const headers = [...OK_HEADERS, ...request.headers.flat(), "Content-Length", String(length)];
      // Of ASCII both encodings are the same, and one is copied where the other is converted.
      outgoing.writeHead(200, headers).end(body, length === body.length ? "latin1" : "utf8");
      return;
    }
    for (const [name, value] of SECURITY_HEADERS) outgoing.setHeader(name, value);
    for (const [name, value] of request.headers) body.headers.set(name, value);
    send(body);
  }

  async #answer(request: DirectRequest, incoming: IncomingMessage): Promise<DirectAnswer> {
    let route = UNROUTED;
    try {
      for (const guard of this.parts.guards) {
        const verdict = guard(request);
        const { rejection, headers, onAnswered, onBegun } = verdict instanceof Promise ? await verdict : verdict;
        if (rejection !== undefined) return { route, body: rejection };
        for (const header of headers ?? []) request.headers.push(header);
        if (onAnswered !== undefined) request.untilAnswered(onAnswered);
        if (onBegun !== undefined) request.untilAnswered(onBegun);
      }
      const bytes = await readBody(request, incoming, this.parts.body);
      if (!Buffer.isBuffer(bytes)) return { route, body: bytes };
      route = COMPOSE_PATH;
      const given = safeJson(bytes);
      if (given === null) return { route, body: problemResponse(notJson()) };
      const body = readCompose(await validated(composeBodyWithNulls, given.value));
      const answer = await request.get("memstem").compose(body, request.signal);
      return { route, body: JSON.stringify(writeCompose(answer)), composed: entryOf(answer) };
    } catch (error) {
      return { route, body: this.parts.failed(request, error) };
    }
  }
}

/** What the log says of an answer. */
export function entryOf({ requestId, plan, warnings }: ComposeAnswer): ComposedEntry {
  const { totalTokens, expectedCachedTokens } = plan;
  return { requestId, totalTokens, expectedCachedTokens, warnings: warnings.map(({ code }) => code) };
}

const OK_HEADERS = [...SECURITY_HEADERS.flat(), "content-type", "application/json"];

/** A request of the plain form, as guards see it. */
class DirectRequest implements GuardedRequest {
  readonly env: HttpEnvironment["Bindings"];
  /** Of the answer. */
  readonly headers: (readonly [name: string, value: string])[] = [];
  readonly #carried: Partial<HttpEnvironment["Variables"]> = {};
  /** By the event: it comes to responses queued after another one too, which are never `closed`. */
  #isClosed = false;
  /** What is called when the response has closed. */
  readonly #done: (() => void)[] = [];
  readonly #client = new AbortController();

  constructor(
    private readonly incoming: IncomingMessage,
    private readonly outgoing: ServerResponse,
  ) {
    this.env = { incoming, outgoing };
    outgoing.once("close", () => {
      this.#isClosed = true;
      if (!outgoing.writableFinished) this.#client.abort("Client connection prematurely closed.");
      for (const done of this.#done) done();
    });
  }

  /** Aborts when the client disconnects before its answer is sent. */
  get signal(): AbortSignal {
    return this.#client.signal;
  }

  readonly req = {
    method: "POST",
    path: COMPOSE_PATH,
    url: COMPOSE_PATH,
    header: (name: string) => headerOf(this.incoming, name),
    query: () => undefined,
  };

  get<Key extends keyof HttpEnvironment["Variables"]>(key: Key): HttpEnvironment["Variables"][Key] {
    // As in Hono's context, the guards set a key before anybody reads it.
    return this.#carried[key] as HttpEnvironment["Variables"][Key];
  }

  set<Key extends keyof HttpEnvironment["Variables"]>(key: Key, value: HttpEnvironment["Variables"][Key]): void {
    this.#carried[key] = value;
  }

  untilAnswered(done: () => void): void {
    if (this.#isClosed || this.outgoing.closed) done();
    else this.#done.push(done);
  }
}

/** A header as the Fetch standard joins it: Node drops the second one of some names. */
function headerOf({ rawHeaders }: IncomingMessage, name: string): string | undefined {
  let joined: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const own = rawHeaders[at] ?? "";
    if (own.length !== name.length || own.toLowerCase() !== name) continue;
    const value = rawHeaders[at + 1] ?? "";
    joined = joined === undefined ? value : `${joined}, ${value}`;
  }
  return joined;
}
