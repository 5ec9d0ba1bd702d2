import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach } from "vitest";

/** What an engine does on a connection, from the request's first bytes on. */
export type Conduct = (socket: Socket, head: string) => unknown;

/** An engine that is nothing but a socket: it says what no HTTP server would. A fresh one for every test. */
export interface RawEngine {
  readonly url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** The first bytes of every request. */
  readonly heads: string[];
  /** What it does from now on. */
  does(conduct: Conduct): void;
  /** Resets all connections. */
  reset(): void;
}

export function rawEngine(): RawEngine {
  const sockets = new Set<Socket>();
  const heads: string[] = [];
  let conduct: Conduct = (socket) => socket.destroy();
  let server: Server;

  beforeEach(async () => {
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {}).once("close", () => sockets.delete(socket));
      socket.on("data", (bytes) => {
        const head = bytes.toString("latin1");
        // What follows of a long body is nobody's head.
        if (!/^(POST|GET) /.test(head)) return;
        // memprefix's own question for the engine's limits: there is nothing that it could be told.
        if (/^user-agent: memprefix\r$/im.test(head))
          return socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        heads.push(head);
        conduct(socket, head);
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
    heads.length = 0;
  });

  return {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    },
    get connections() {
      return sockets.size;
    },
    heads,
    does: (wanted) => {
      conduct = wanted;
    },
    reset() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
  };
}
