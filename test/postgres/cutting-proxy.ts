import { connect, createServer, type Socket } from "node:net";

/** What becomes of a transaction's end. */
export type Cut = "nothing" | "before the server hears of it" | "before its client hears of it";

/** Stands between a client and a server, and cuts connections at the end of a transaction. */
export interface CuttingProxy {
  /** The server's URL, through the proxy. */
  readonly url: string;
  /** What becomes of the next `times` transactions' ends. */
  cut(what: Cut, times?: number): void;
  /** How many connections were cut. */
  count(): number;
  stop(): Promise<void>;
}

/** A message of the protocol begins with its type and four bytes of length. `Query`: then the text. */
const QUERY = "Q".charCodeAt(0);
const HEADER_BYTES = 5;

/** Milliseconds in which the server certainly ends a transaction. */
const COMMIT_MS = 200;

export async function startCuttingProxy(serverUrl: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(serverUrl);
  const sockets = new Set<Socket>();
  let what: Cut = "nothing";
  let left = 0;
  let count = 0;
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    let isDeaf = false;
    server.on("data", (data) => {
      if (!isDeaf) client.write(data);
    });
    client.on("data", (data) => {
      if (left > 0 && what !== "nothing" && endsTransaction(data)) {
        left--;
        count++;
        if (what === "before the server hears of it") {
          client.destroy();
          return;
        }
        isDeaf = true;
        server.write(data);
        setTimeout(() => client.destroy(), COMMIT_MS);
        return;
      }
      server.write(data);
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const url = new URL(serverUrl);
  url.port = String(address.port);
  return {
    url: url.href,
    cut(next, times = 1) {
      what = next;
      left = times;
    },
    count: () => count,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

function endsTransaction(data: Buffer): boolean {
  const text = "commit\0";
  for (let at = data.indexOf(text); at !== -1; at = data.indexOf(text, at + 1))
    if (data[at - HEADER_BYTES] === QUERY) return true;
  return false;
}
