import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OutdatedCallError, openUpstream, type Upstream } from "../../../src/engines/upstream/upstream.js";

describe("a call that may be outdated when it is sent", () => {
  const received: string[] = [];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let server: Server;
  let upstream: Upstream;
  beforeEach(async () => {
    received.length = 0;
    answer = (_request, response) => response.end("{}");
    server = createServer(async (request, response) => {
      received.push(Buffer.concat(await request.toArray()).toString("utf8"));
      answer(request, response);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    upstream = openUpstream({ url: `http://127.0.0.1:${port}`, timeoutMs: 5_000 });
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });

  let asked = 0;
  async function send(isCurrent: boolean, body = "the prompt"): Promise<number> {
    asked = 0;
    const call = { method: "POST", path: "x", query: "", headers: [], body } as const;
    const current = async () => {
      asked++;
      return isCurrent;
    };
    const sent = await upstream.send({ ...call, isCurrent: current }, new AbortController().signal);
    for await (const _ of sent.body);
    return sent.status;
  }

  it("is asked about behind a new connection, and is not sent where it is", async () => {
    await expect(send(false)).rejects.toBeInstanceOf(OutdatedCallError);
    expect([asked, received]).toEqual([1, []]);
    expect(await send(true)).toBe(200);
    expect([asked, received]).toEqual([1, ["the prompt"]]);
  });

  it("is sent at once on a connection that is there", async () => {
    await send(true);
    expect(await send(true, "the next")).toBe(200);
    expect([asked, received]).toEqual([0, ["the prompt", "the next"]]);
  });

  it("is asked about before it is sent once more, as its connection was closed", async () => {
    await send(true);
    answer = (request) => request.socket.destroy();
    await expect(send(false, "the next")).rejects.toBeInstanceOf(OutdatedCallError);
    expect(received).toEqual(["the prompt", "the next"]);
    expect(asked).toBe(1);
  });
});
