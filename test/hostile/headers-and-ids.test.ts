/*
 * Attacked: names. Headers, fields, parameters and ids that JavaScript, HTTP or URLs take for something else, keys in places where memprefix does
 * not look for them, and the same thing said twice. Broke: a header `constructor`, `X-Memprefix-User` given twice, users `.` and `..`, keys in
 * cookies and queries, `__proto__` lost without a word, blanks around a `request_id`. Held: every other id through every route, and names of
 * JavaScript's as users, models and memories.
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import type { UserId } from "../../src/core/index.js";
import { callerOf } from "../http/guards/callers.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { problemOf, servedApp } from "../http/server/served-app.js";
import { IS_WHOLE } from "../run-length.js";
import { storedCounts } from "../stored-counts.js";

const JS_NAMES = ["__proto__", "constructor", "hasOwnProperty", "toString", "valueOf", "__defineGetter__"];
const CHAT = "/v1/chat/completions";
const question = { messages: [{ role: "user", content: "Tea?" }] };

/** Sends what `fetch` would put in order first: a path as it stands, and headers that occur more than once. */
async function sendRaw(base: string, method: string, path: string, headers: readonly string[] = [], body = "") {
  const { hostname, port } = new URL(base);
  const all = [...headers, "host", "localhost", "connection", "close", "content-type", "application/json"];
  const length = ["content-length", String(Buffer.byteLength(body))];
  const sent = request({ hostname, port, method, path, headers: [...all, ...length] }).end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  const contentType = answer.headers["content-type"] ?? null;
  return { status: answer.statusCode ?? 0, contentType, text: await text(answer) };
}

describe("a chat on its way to the engine", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine });
  const chat = (headers: readonly string[], more: object = {}, query = "") =>
    sendRaw(app.base, "POST", CHAT + query, headers, JSON.stringify({ ...question, user: "ada", ...more }));
  const last = () => engine.requests.at(-1);

  it.each(JS_NAMES)("keeps a header, a model and a field of the name %s", async (name) => {
    const body = `{"user":"ada","model":"${name}","messages":[{"role":"user","content":"Tea?"}],"constructor":{"a":1},"toString":2}`;
    expect((await sendRaw(app.base, "POST", CHAT, [name, "x", name, "y"], body)).status).toBe(200);
    const received = last();
    expect(Object.entries(received?.headers ?? {}).find(([header]) => header === name.toLowerCase())?.[1]).toBe(
      name === "__proto__" ? undefined : "x, y",
    );
    expect(received?.raw).toContain(`"model":"${name}"`);
    expect(received?.raw).toContain('"constructor":{"a":1},"toString":2');
  });

  it("has what was said of one thing once only: headers of ours that come twice are refused, by name", async () => {
    for (const name of ["X-Memprefix-User", "x-memprefix-conversation", "X-MEMPREFIX-ANYTHING"]) {
      for (const first of ["bo", "ada", ""]) {
        const exchange = await chat([name, first, name, "ada"]);
        expect(exchange.status).toBe(422);
        expect(JSON.parse(exchange.text)).toMatchObject({
          errors: [{ field: name.toLowerCase(), message: "must be given once" }],
          error: { param: name.toLowerCase() },
        });
      }
    }
    expect(engine.requests).toEqual([]);
    // A comma in one value is a name like any other.
    expect((await chat(["x-memprefix-user", "ada, bo"], { user: undefined })).status).toBe(200);
  });

  it("has no key of memprefix's in it, wherever it was put, and without keys all else of the client's", async () => {
    const key = `mst_0123456789ab_${"x".repeat(43)}`;
    const headers = ["authorization", `Bearer ${key}`, "api-key", key, "cookie", `a=1; key=${key}`, "x-own", key];
    expect((await chat(headers, {}, `?api_key=${key}&a=1&${key}=b`)).status).toBe(200);
    expect(JSON.stringify([last()?.headers, last()?.url])).not.toContain("mst_");
    expect(last()?.url).toBe(`/v1/chat/completions?a=1`);
    const own = ["authorization", "Bearer sk-1", "api-key", "sk-2", "cookie", "a=1", "x-session-id", "farmst_1"];
    await chat(own, {}, "?api_key=sk-3&api-version=1");
    expect(last()?.headers).toMatchObject({
      authorization: "Bearer sk-1",
      "api-key": "sk-2",
      cookie: "a=1",
      "x-session-id": "farmst_1",
    });
    expect(last()?.url).toBe("/v1/chat/completions?api_key=sk-3&api-version=1");
  });

  it("with keys in use has no credentials of the client's at all, and its other headers and parameters", async () => {
    const { key } = callerOf(app, "acme");
    const credentials = ["cookie", "session=1", "api-key", "sk-2", "x-goog-api-key", "sk-3", "X-Auth-Token", "sk-4"];
    const headers = [...credentials, "x-api-key", key, "authorization", "Bearer sk-1", "x-session-id", "s"];
    const query = "?api_key=sk-5&API-KEY=sk-6&api-version=2024-10-21&key=sk-7&access_token=sk-8&a=1%2C2";
    expect((await chat(headers, {}, query)).status).toBe(200);
    expect(last()?.headers).toMatchObject({ "x-session-id": "s" });
    expect(JSON.stringify([last()?.headers, last()?.url])).not.toMatch(/sk-|mst_|session=1/);
    expect(last()?.url).toBe("/v1/chat/completions?api-version=2024-10-21&a=1%2C2");
    await sendRaw(app.base, "GET", `/v1/models${query}`, headers);
    expect(JSON.stringify([last()?.headers, last()?.url])).not.toMatch(/sk-|mst_|session=1/);
  });

  it("with a field called __proto__, which would be lost, is refused, and its text may say it", async () => {
    for (const field of ["__proto__", "\\u005f_proto_\\u005F", "__\\u0070roto__"]) {
      for (const body of [
        `{"user":"ada","messages":[{"role":"user","content":"x"}],"${field}" :{"a":1}}`,
        `{"user":"ada","messages":[{"role":"user","content":"x","${field}":{"a":1}}]}`,
      ]) {
        const exchange = await sendRaw(app.base, "POST", CHAT, [], body);
        expect(exchange.status).toBe(422);
        expect(JSON.parse(exchange.text)).toMatchObject({ errors: [{ field: "__proto__" }] });
      }
    }
    const content = '{"__proto__": 1} __proto__: and "__proto__" : 2';
    expect((await chat([], { messages: [{ role: "user", content }] })).status).toBe(200);
    expect(last()?.raw).toContain(JSON.stringify(content));
  });

  it("keeps its request_id exactly, or is refused", async () => {
    for (const request_id of [" r", "r ", " "]) {
      const { status } = await chat([], { memprefix: { request_id } });
      expect(status).toBe(422);
    }
    for (const request_id of ["r  1", 'r"1"', "r,1", "~!@#$%^&*()"]) {
      expect((await chat([], { memprefix: { request_id } })).status).toBe(200);
      expect(last()?.headers["x-request-id"]).toBe(request_id);
    }
  });
});

/** Ids that something on the way could take for something else. */
const IDS = [
  ...[".", "..", "%2e%2e", "a/b", "../..", "a?b=c#d", "&a=b", "a+b", " a ", "100%", "\\", "*", "😀", "e\u0301"],
  ...["\u202eabc", "a\u2028b", "user_id", "index", "export"],
  ...JS_NAMES,
];
const inPath = (id: string) => encodeURIComponent(id);
const inQuery = (given: Record<string, string>) => new URLSearchParams(given).toString();

describe("an id", () => {
  const app = servedApp();
  const json = async (method: string, path: string) => {
    const answer = await app.send(method, path);
    return { status: answer.status, body: JSON.parse(answer.text) as Record<string, unknown> };
  };
  const countsOf = async (user: string) => storedCounts(await app.memprefix.exportUser(user as UserId));

  it.each(IDS.filter((_, at) => IS_WHOLE || at % 3 === 0))(
    "%j of a user, a memory and a request leads to what is held on it, and to nothing else",
    async (id) => {
      const requestId = /^[\x20-\x7e]*$/.test(id) && id.trim() === id ? id : "r";
      const said = `The memory of the id ${IDS.indexOf(id)}.`;
      const memories = [{ id, memory: said }];
      const compose = () => app.compose({ user_id: id, request_id: requestId, query: "Tea?", memories });
      await compose();
      await app.compose({ user_id: "bystander", query: "Tea?", memories });
      const query = inQuery({ user_id: id });
      const byQuery = {
        exported: `/user/export?${query}`,
        user: `/user?${query}`,
        memory: `/user/memory?${inQuery({ user_id: id, memory_id: id })}`,
        explain: `/request/explain?${inQuery({ user_id: id, request_id: requestId })}`,
      };
      const user = `/users/${inPath(id)}`;
      const byPath = {
        ...{ exported: `${user}/export`, user, memory: `${user}/memories/${inPath(id)}` },
        explain: `/requests/${inPath(requestId)}/explain?${query}`,
      };
      const ways = [byQuery, ...(id === "." || id === ".." ? [] : [byPath])];
      for (const { exported, user, memory, explain } of ways) {
        expect(await json("GET", exported)).toMatchObject({ status: 200, body: { user_id: id, scopes: [{}] } });
        expect(JSON.stringify((await json("GET", exported)).body)).toContain(JSON.stringify(said).slice(1, -1));
        expect(await json("GET", explain)).toMatchObject({ status: 200, body: { request_id: requestId } });
        expect(await json("DELETE", memory)).toMatchObject({ status: 200, body: { memory_id: id, labels: [1] } });
        expect(await json("DELETE", user)).toMatchObject({ status: 200, body: { user_id: id, scopes: 1 } });
        expect((await json("GET", exported)).body).toMatchObject({ scopes: [] });
        await app.send("DELETE", `/user?${query}`);
        await compose();
      }
      expect(await countsOf("bystander")).toMatchObject({ requests: 1, blocks: 1 });
    },
  );

  it.each([
    ["DELETE", "/users/."],
    ["DELETE", "/users/%2e%2E"],
    ["GET", "/users/../export"],
    ["DELETE", "/users/ada/memories/.."],
    ["DELETE", "/users/ada/memories/%2E%2e"],
    ["DELETE", "/users/ada/memories/../../bo"],
    ["DELETE", "/users/ada/"],
    ["DELETE", "/users//"],
  ])("that a path cannot say does nothing to anybody: %s %s", async (method, path) => {
    for (const user of ["ada", ".", ".."])
      await app.compose({ user_id: user, query: "Tea?", memories: [{ id: "m", memory: "Tea" }] });
    const { status } = await sendRaw(app.base, method, path);
    if (path.endsWith("/bo")) expect(status).toBe(200);
    else expect([404, 405]).toContain(status);
    for (const user of ["ada", ".", ".."]) {
      expect(await countsOf(user)).toMatchObject({ requests: 1, blocks: 1 });
    }
  });

  it.each(["", "%00", "x".repeat(257)])("%j is refused in a query as in a path", async (id) => {
    for (const [method, path] of [
      ["GET", `/user/export?user_id=${id}`],
      ["DELETE", `/user?user_id=${id}`],
      ["DELETE", `/user/memory?user_id=${id}&memory_id=m`],
      ["GET", `/request/explain?user_id=${id}&request_id=r`],
      ...(id === "" ? [] : ([["DELETE", `/users/${id}`]] as const)),
    ] as const) {
      const exchange = await app.send(method, path);
      expect(exchange.status).toBe(422);
      expect(problemOf(exchange).errors?.[0]?.field).toBe("user_id");
    }
  });

  it("in bytes that are no UTF-8 is refused, not taken as it stands", async () => {
    for (const [method, path] of [
      ["DELETE", "/users/%ff"],
      ["GET", "/users/Jos%E9/export"],
      ["GET", "/user/export?user_id=Jos%E9"],
      ["GET", "/users/%ed%a0%80/export"],
      ["DELETE", "/users/%"],
    ] as const) {
      expect(problemOf(await sendRaw(app.base, method, path)).status).toBe(400);
    }
  });

  it("that is given twice is refused", async () => {
    for (const [method, path, field] of [
      ["GET", "/requests/r/explain?user_id=a&agent_id=a&agent_id=b", "agent_id"],
      ["GET", "/user/export?user_id=a&user_id=b", "user_id"],
      ["GET", "/user/export?user_id=a&user%5Fid=a", "user_id"],
      ["DELETE", "/user?user_id=a&user_id=b", "user_id"],
      ["POST", "/compose/batch?window=1&window=2", "window"],
      ["GET", "/requests/r/explain?user_id=a&user_id=b", "user_id"],
    ] as const) {
      const exchange = await sendRaw(app.base, method, path, [], method === "POST" ? '{"requests":[]}' : "");
      expect(problemOf(exchange)).toMatchObject({ status: 422, errors: [{ field, message: "must be given once" }] });
    }
  });

  it("of an address that is none is a problem like any other", async () => {
    const { port } = new URL(app.base);
    for (const target of ["/users/a\\b/export", "nowhere"]) {
      const socket = connect(Number(port), "127.0.0.1");
      socket.write(`GET ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
      const answer = String((await once(socket, "data"))[0]);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      if (answer.includes("\r\n\r\n{")) expect(answer).toContain("application/problem+json");
      socket.destroy();
    }
    expect(app.faults).toEqual([]);
  });
});
