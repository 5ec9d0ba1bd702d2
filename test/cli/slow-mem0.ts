import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach } from "vitest";

/** Stands in for Mem0's REST server, and takes its time. */
export interface SlowMem0 {
  readonly url: string;
  /** How long an answer takes; longer than any deadline: it hangs. */
  delayMs: number;
  /** Resolves when the next request arrives. */
  asked(): Promise<void>;
}

/** A server of its own for every test of the file, which answers every search with these memories. */
export function slowMem0(memories: readonly { readonly id: string; readonly memory: string }[]): SlowMem0 {
  let server: Server;
  let url = "";
  let arrived = () => {};
  const mem0: SlowMem0 = {
    get url() {
      return url;
    },
    delayMs: 0,
    asked: () =>
      new Promise((resolve) => {
        arrived = resolve;
      }),
  };
  beforeEach(async () => {
    mem0.delayMs = 0;
    server = createServer((request, response) => {
      request.resume();
      arrived();
      setTimeout(() => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ results: memories.map((memory) => ({ ...memory, user_id: "ada" })) }));
      }, mem0.delayMs).unref();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return mem0;
}
