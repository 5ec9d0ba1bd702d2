import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import type { MemoryId } from "../../src/core/text/ids.js";
import { openHostedMem0 } from "../../src/memory/hosted-mem0.js";
import { type MemorySource, MemorySourceError, withDeadline } from "../../src/memory/memory-source.js";
import { openRestMem0 } from "../../src/memory/rest-mem0.js";
import { freePort } from "../local-server.js";
import { standIn } from "../stand-in.js";
import { json } from "./mem0-wire-server.js";
import { failureOf, scopeOf } from "./memory-source.suite.js";

const KEY = "m0-very-secret";
const never = new AbortController().signal;
const ada = scopeOf("ada");

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** A search against a server that behaves as `handle` says. */
async function searchAgainst(open: (url: string) => MemorySource, handle: Handle): Promise<unknown> {
  return await search(open(await standIn(handle)));
}

function begin(response: ServerResponse, start: string, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { "content-type": "application/json", ...headers }).write(start);
}

function search(source: MemorySource, signal = never) {
  return source.search({ scope: ada, query: "what does Ada drink?", topK: 5 }, signal);
}

const SOURCES: readonly [string, (url: string) => MemorySource][] = [
  ["the REST source", (url) => openRestMem0({ url, apiKey: KEY })],
  ["the hosted source", (url) => openHostedMem0({ url, apiKey: KEY })],
];

describe.each(SOURCES)("%s", (_name, open) => {
  it("is unreachable where nobody listens", async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await failureOf(search(open(url)))).toEqual({ kind: "unreachable", cause: "ECONNREFUSED" });
  });

  it.each([500, 401, 429, 404])(
    "is refused with status %d, and the key is in nothing that the error carries",
    async (status) => {
      const error = await searchAgainst(
        open,
        json({ detail: `bad key ${KEY}`, more: "x".repeat(5_000) }, status),
      ).catch((caught: unknown) => caught);
      if (!(error instanceof MemorySourceError)) throw new Error("it was not refused");
      expect(error.failure).toMatchObject({
        kind: "refused",
        status,
        body: expect.stringMatching(/^\{"detail":"bad key \*\*\*/),
      });
      expect(error.failure).toHaveProperty("body.length", 500 - KEY.length + 3);
      expect(`${error.message}${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(KEY);
    },
  );

  it("does not follow a redirect, which would carry the key away", async () => {
    const elsewhere = vi.fn(json({ results: [] }));
    const other = await standIn(elsewhere);
    const failure = await failureOf(searchAgainst(open, json({}, 307, { location: `${other}/search` })));
    expect(failure).toMatchObject({ kind: "refused", status: 307 });
    expect(elsewhere).not.toHaveBeenCalled();
  });

  it.each([null, 7, "text", {}, { results: null }])("cannot read %j for an answer", async (body) => {
    expect(await failureOf(searchAgainst(open, json(body)))).toMatchObject({ kind: "unreadable", cause: /^answer/ });
  });

  it("leaves out items without text, and other users'", async () => {
    const results = [
      { id: 1, memory: null, user_id: "ada" },
      { id: 2, memory: "hers", user_id: "ada" },
      { id: 3, memory: "his", user_id: "bob" },
      { id: 4, memory: "nobody's" },
      "nonsense",
    ];
    expect(await searchAgainst(open, json({ results }))).toEqual([
      { id: "2", text: "hers" },
      { id: "4", text: "nobody's" },
    ]);
  });

  it("takes at most topK, whatever it is given", async () => {
    const results = Array.from({ length: 50 }, (_, id) => ({ id, memory: `m${id}` }));
    expect(await searchAgainst(open, json({ results }))).toHaveLength(5);
  });

  const tooLarge: [string, Handle][] = [
    ["says that it is too large", (_request, response) => begin(response, "[", { "content-length": String(2 ** 40) })],
    [
      "unpacks to one too large",
      (_request, response) => {
        const packed = gzipSync(Buffer.alloc(64 * 1024 * 1024, " "));
        response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(packed);
      },
    ],
  ];
  it.each(tooLarge)("does not read an answer that %s", async (_which, handle) => {
    const failure = await failureOf(searchAgainst(open, handle));
    expect(failure).toMatchObject({ kind: "unreadable", cause: /^more than/ });
  });

  it("stops reading an answer that turns out too large", async () => {
    let sent = 0;
    const searching = searchAgainst(open, (_request, response) => {
      const block = " ".repeat(1024 * 1024);
      const more = () => {
        sent += 1;
        if (!response.destroyed && sent < 200) response.write(block, more);
      };
      begin(response, "");
      more();
    });
    expect(await failureOf(searching)).toMatchObject({ kind: "unreadable", cause: /^more than/ });
    expect(sent).toBeLessThan(100);
  });

  it("ends at its deadline where the server is slow, and closes the connection", async () => {
    let closed: Promise<void> | undefined;
    const url = await standIn((request) => {
      closed = new Promise((resolve) => request.socket.once("close", () => resolve()));
    });
    const source = withDeadline(open(url), { searchMs: 100, writeMs: 100 });
    expect(await failureOf(search(source))).toEqual({ kind: "timeout", afterMs: 100 });
    await closed;
  });

  it("ends at its deadline where the server stops in the middle of its answer", async () => {
    const url = await standIn((_request, response) => begin(response, '{"results": ['));
    const source = withDeadline(open(url), { searchMs: 100, writeMs: 100 });
    expect(await failureOf(search(source))).toEqual({ kind: "timeout", afterMs: 100 });
  });

  it.each(["", ".", ".."])("asks for no memory with the id %j, which a URL would take for another path", async (id) => {
    const asked = vi.fn(json({ user_id: "ada", memory: "x" }));
    expect(await open(await standIn(asked)).delete(ada, id as MemoryId, never)).toBe(false);
    expect(asked).not.toHaveBeenCalled();
  });

  it("reports a failure of every kind of call", async () => {
    const source = open(await standIn(json({ detail: "down" }, 503)));
    const down = { kind: "refused", status: 503 };
    expect(await failureOf(source.add(ada, [{ text: "tea" }], never))).toMatchObject(down);
    expect(await failureOf(source.delete(ada, "x" as MemoryId, never))).toMatchObject(down);
    expect(await failureOf(source.deleteUser(ada, never))).toMatchObject(down);
  });
});
