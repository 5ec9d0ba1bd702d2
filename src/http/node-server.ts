import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { HttpSurface } from "./app.js";
import { JoinedHead } from "./joined-head.js";

/** The app on Node's own HTTP server, which listens nowhere yet. `hostname`: where it is going to. */
export function nodeServer({ app, admission }: HttpSurface, hostname: string): Server {
  const listener = admission.before(getRequestListener(app.fetch, { hostname }));
  const server = createServer({ ServerResponse: JoinedHead }, listener);
  server.on("connection", () => admission.connected());
  return server;
}
