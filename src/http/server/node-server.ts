import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { problem, problemResponse } from "../problems/problem.js";
import type { HttpSurface } from "./app.js";

/** Milliseconds that a request's head may take. Nothing is done for it by then, and it has no place among those in work. */
const HEADERS_TIMEOUT_MS = 60_000;

/** What Hono cannot make a URL of. */
const UNREADABLE = problem(400, "the request's address, or its host, is none");

/** The app on Node's own HTTP server, which listens nowhere yet. `hostname`: where it is going to. */
export function nodeServer({ app, admission, answerTimeoutMs }: HttpSurface, hostname: string): Server {
  const listener = admission.before(
    getRequestListener(app.fetch, { hostname, errorHandler: () => problemResponse(UNREADABLE) }),
  );
  const queued = new PipelinedResponses();
  // How long a body may take is the app's to say, of each by its length.
  const options = { ServerResponse: CorkedResponse, requestTimeout: 0, headersTimeout: HEADERS_TIMEOUT_MS };
  const server = createServer(options, (incoming, outgoing) => {
    queued.watch(incoming, outgoing);
    outgoing.setTimeout(answerTimeoutMs).on("timeout", (socket: Socket) => {
      // Else it is the engine that is waited for.
      if (socket.writableLength > 0) socket.destroy();
    });
    listener(incoming, outgoing);
  });
  server.on("connection", () => admission.connected());
  return server;
}

/**
 * A response whose head leaves together with what of its body is at hand by then, in one write instead of two: a stream's first token
 * is there when its head is. A head whose body is slow to come leaves when nothing more can be done at once.
 */
export class CorkedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  override flushHeaders(): void {
    this.cork();
    // Behind all that is promised already, and before anything else that the event loop has.
    queueMicrotask(() => process.nextTick(() => this.uncork()));
    super.flushHeaders();
  }
}

/**
 * Responses that wait behind another one on their connection, as they do for pipelined requests (RFC 9112 §9.3.2). When a connection
 * closes, Node tells the response whose turn it is, and no other: these would be waited for as long as the process lives.
 */
export class PipelinedResponses {
  /** By connection; bounded by the requests in work. */
  readonly #queued = new WeakMap<Socket, Set<ServerResponse>>();

  /** To be called with every request, before anything is done for it. Ends its response with its connection. */
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
