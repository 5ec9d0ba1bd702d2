import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { inCallersTrace } from "../../service/base/spans.js";
import { problem, problemResponse } from "../problems/problem.js";
import type { HttpEnvironment } from "../requests/request.js";

/** A request counts as in flight only after its head was read. */
const HEADERS_TIMEOUT_MS = 60_000;

/** For a target and host that Hono cannot parse as a URL. */
const UNREADABLE = problem(400, "the request target or the host is not valid");

export interface HttpSurface {
  readonly app: OpenAPIHono<HttpEnvironment>;
  /** Longest time that a client may leave an answer unread. */
  readonly answerTimeoutMs: number;
}

/** The app on Node's HTTP server, not listening yet. `hostname`: where it will. */
export function nodeServer({ app, answerTimeoutMs }: HttpSurface, hostname: string): Server {
  const adapted = getRequestListener(app.fetch, { hostname, errorHandler: () => problemResponse(UNREADABLE) });
  const queued = new PipelinedResponses();
  // The app limits how long a body may be silent.
  const options = { requestTimeout: 0, headersTimeout: HEADERS_TIMEOUT_MS };
  const server = createServer(options, (incoming, outgoing) => {
    queued.watch(incoming, outgoing);
    outgoing.setTimeout(answerTimeoutMs).on("timeout", (socket: Socket) => {
      // With nothing to write, the answer waits for the engine, not for the client.
      if (socket.writableLength > 0) socket.destroy();
    });
    inCallersTrace(incoming.headers, () => adapted(incoming, outgoing));
  });
  return server;
}

/**
 * Queued responses of pipelined requests (RFC 9112 §9.3.2). When a connection closes, Node emits "close" only on its current response, so the
 * queued ones would never end. This ends them.
 */
class PipelinedResponses {
  /** By connection; bounded by the requests in flight. */
  readonly #queued = new WeakMap<Socket, Set<ServerResponse>>();

  /** Call it first for every request. Ends the response when its connection closes. */
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
