import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach } from "vitest";

/** How the service answers one request, in the order in which they come; the last one answers all that follow. */
export type Behaviour = (response: ServerResponse, body: string, request: IncomingMessage) => void;

/** A server that fails as services and what stands in front of them do. */
export interface FailingService {
  readonly url: string;
  /** Bodies of the requests so far. */
  readonly bodies: readonly string[];
  /** When they came, in milliseconds. */
  readonly times: readonly number[];
  behave(...behaviours: Behaviour[]): void;
}

/** Serves on a socket of the loopback; a fresh one for every test. */
export function failingService(): FailingService {
  const bodies: string[] = [];
  const times: number[] = [];
  const sockets = new Set<Socket>();
  let behaviours: Behaviour[] = [];
  let server: Server;
  beforeEach(async () => {
    bodies.length = 0;
    times.length = 0;
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const behaviour = behaviours[bodies.length] ?? behaviours.at(-1);
        bodies.push(body);
        times.push(performance.now());
        behaviour?.(response, body, request);
      });
    });
    server.on("connection", (socket) => sockets.add(socket));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((closed) => server.close(closed));
  });
  return {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    bodies,
    times,
    behave(...given) {
      behaviours = given;
    },
  };
}

/** Answers with JSON. */
export const json =
  (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (response) => {
    const type = status < 400 ? "application/json" : "application/problem+json";
    response.writeHead(status, { "content-type": type, ...headers }).end(JSON.stringify(value));
  };

/** Answers with a problem as the service does. */
export const problem = (status: number, detail: string, headers?: Readonly<Record<string, string>>): Behaviour =>
  json(status, { type: "about:blank", title: "Title", status, detail }, headers);

/** Closes the connection without an answer. */
export const reset: Behaviour = (response) => response.socket?.resetAndDestroy();

/** Never answers. */
export const hang: Behaviour = () => {};

/** Announces a whole answer, sends its first bytes, and closes the connection. */
export const half =
  (text: string): Behaviour =>
  (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": String(2 * text.length) });
    response.write(text, () => response.destroy());
  };

/** Answers as a server does that is none of memprefix's. */
export const page =
  (status: number): Behaviour =>
  (response) =>
    response.writeHead(status, { "content-type": "text/html" }).end("<html>Sign in</html>");
