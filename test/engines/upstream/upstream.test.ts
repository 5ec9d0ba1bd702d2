import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openUpstream,
  passedOn,
  type Upstream,
  type UpstreamAnswer,
  type UpstreamCall,
  UpstreamError,
} from "../../../src/engines/upstream/upstream.js";

let server: Server | undefined;
async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((done) => server?.close(done) ?? done(null));
  server = undefined;
});

const call = { method: "POST", path: "chat/completions", query: "", headers: [], body: "{}" } as const;
const never = new AbortController().signal;
async function textOf({ body }: UpstreamAnswer): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

describe("a call to an engine", () => {
  it("goes below the base URL, with its own query and the client's, and names no password", async () => {
    const seen: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      seen.push(request.url, request.headers.authorization);
      response.end("{}");
    });
    const upstream = openUpstream({ url: `${url.replace("://", "://me:secret@")}/api/v1/?key=1`, timeoutMs: 1_000 });
    expect(upstream.name).toBe(`${url}/api/v1`);
    expect(await textOf(await upstream.send({ ...call, query: "?a=b%20c" }, never))).toBe("{}");
    expect(seen).toEqual(["/api/v1/chat/completions?key=1&a=b+c", `Basic ${btoa("me:secret")}`]);
  });

  it("has the credentials of the address in place of the client's, but not of a key", async () => {
    const seen: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      seen.push(request.headers.authorization);
      response.end("{}");
    });
    const own = { ...call, headers: [["Authorization", "Bearer of-the-client"]] } as const;
    const parts = { url: url.replace("://", "://me:secret@"), timeoutMs: 1_000 };
    for (const apiKey of [undefined, "sk-own"]) await textOf(await openUpstream({ ...parts, apiKey }).send(own, never));
    expect(seen).toEqual([`Basic ${btoa("me:secret")}`, "Bearer sk-own"]);
  });

  describe("with kept connections", () => {
    /** Paths that were requested: what the engine does. */
    const received: string[] = [];
    let upstream: Upstream;
    const sent = (path: string, more: Partial<UpstreamCall> = {}) =>
      upstream.send({ ...call, path, ...more }, never).then(textOf);
    beforeEach(async () => {
      received.length = 0;
      const known = new Set<object>();
      // Two at once, so that each has a connection.
      const both: ServerResponse[] = [];
      const url = await serve((request, response) => {
        const { url: path = "", socket } = request;
        received.push(path);
        const isKept = known.has(socket);
        known.add(socket);
        request.resume().on("end", () => {
          if (path === "/work") setTimeout(() => socket.resetAndDestroy(), 1_100);
          else if (path === "/break" || (path === "/stale" && isKept)) socket.resetAndDestroy();
          else if (path !== "/keep") response.end("fine");
          else if (both.push(response) === 2) for (const waiting of both) waiting.end("kept");
        });
      });
      upstream = openUpstream({ url, timeoutMs: 5_000 });
      await Promise.all([sent("keep"), sent("keep")]);
      received.length = 0;
    });

    it("is sent once more on a new one, as all of them may be closed", async () => {
      expect(await sent("stale")).toBe("fine");
      expect(received).toEqual(["/stale", "/stale"]);
    });

    it("is sent no third time", async () => {
      await expect(sent("break")).rejects.toMatchObject({ failure: { cause: "ECONNRESET" } });
      expect(received).toEqual(["/break", "/break"]);
    });

    it("is not sent again where the engine has worked on it", async () => {
      await expect(sent("work")).rejects.toMatchObject({ failure: { cause: "ECONNRESET" } });
      expect(received).toEqual(["/work"]);
    });

    it("is sent again where a long body meets a closed one", async () => {
      server?.closeIdleConnections();
      expect(await sent("long", { body: "x".repeat(8_000_000) })).toBe("fine");
      expect(received).toEqual(["/long"]);
    });

    it("has a connection of its own where it may be sent only once", async () => {
      expect(await sent("stale", { isOnce: true })).toBe("fine");
      await expect(sent("break", { isOnce: true })).rejects.toThrow(UpstreamError);
      expect(received).toEqual(["/stale", "/break"]);
    });
  });

  it("that is given up before it is made is not made", async () => {
    const upstream = openUpstream({ url: "http://127.0.0.1:1", timeoutMs: 1_000 });
    const error = await upstream.send(call, AbortSignal.abort()).catch((raised: unknown) => raised);
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({ failure: { kind: "aborted" } });
  });

  it("keeps an empty answer, and every header of the answer but the connection's", async () => {
    const url = await serve((_request, response) => {
      response.writeHead(204, { "set-cookie": ["a=1", "b=2"], "x-memprefix-request-id": "forged", "x-own": "1" }).end();
    });
    const answer = await openUpstream({ url, timeoutMs: 1_000 }).send({ ...call, method: "GET", body: null }, never);
    expect(answer.status).toBe(204);
    expect(answer.headers.filter(([name]) => name !== "date")).toEqual([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["x-own", "1"],
    ]);
    expect(await textOf(answer)).toBe("");
  });
});

describe("headers", () => {
  it("of the connection, those it names, and memprefix's own stay", () => {
    const given = {
      Connection: "close, X-Hop",
      "X-Hop": "1",
      Host: "h",
      "X-Memprefix-User": "u",
      "X-Session-Id": "s",
      TE: "x",
    };
    expect(passedOn(Object.entries(given))).toEqual([["x-session-id", "s"]]);
  });
});
