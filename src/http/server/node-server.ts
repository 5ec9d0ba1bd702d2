import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { problem, problemResponse } from "../problems/problem.js";
import type { HttpSurface } from "./app.js";
import { JoinedHead } from "./joined-head.js";
import { QueuedResponses } from "./queued-responses.js";

/** Milliseconds that a request's head may take. Nothing is done for it by then, and it has no place among those in work. */
const HEADERS_TIMEOUT_MS = 60_000;

/** What Hono cannot make a URL of. */
const UNREADABLE = problem(400, "the request's address, or its host, is none");

/** The app on Node's own HTTP server, which listens nowhere yet. `hostname`: where it is going to. */
export function nodeServer({ app, admission, answerTimeoutMs }: HttpSurface, hostname: string): Server {
  const listener = admission.before(
    getRequestListener(app.fetch, { hostname, errorHandler: () => problemResponse(UNREADABLE) }),
  );
  const queued = new QueuedResponses();
  // How long a body may take is the app's to say, of each by its length.
  const options = { ServerResponse: JoinedHead, requestTimeout: 0, headersTimeout: HEADERS_TIMEOUT_MS };
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
