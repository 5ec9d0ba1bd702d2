import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";

/** An HTTP server on a free port of the loopback. */
export interface LocalServer {
  readonly url: string;
  readonly port: number;
  /** Also ends the connections that are open. */
  close(): Promise<void>;
}

export async function localServer(listener: RequestListener): Promise<LocalServer> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async close() {
      server.closeAllConnections();
      if (server.listening) await new Promise((closed) => server.close(closed));
    },
  };
}

/** A port of the loopback that nobody listens at. */
export async function freePort(): Promise<number> {
  const server = createSocketServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}
