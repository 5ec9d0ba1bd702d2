import { describe, expect, it } from "vitest";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { openAiEngine } from "./openai-engine.js";

const TEA = "Ada drinks green tea";
const QUESTION = [{ role: "user", content: "Which tea?" }];
const DOORS = [
  ["chat/completions", { model: "m", messages: QUESTION }],
  ["responses", { model: "m", input: "Which tea?" }],
  ["messages", { model: "m", max_tokens: 9, messages: QUESTION }],
] as const;

describe("a base URL that names the user", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const app = servedApp({ source: () => source, upstream: engine });
  const received = () => engine.requests.at(-1)?.raw ?? "";

  it("is enough for each of the three doors, and nothing of it goes to the engine", async () => {
    for (const [door, body] of DOORS) {
      const { status } = await app.send("POST", `/users/caroline/v1/${door}`, body);
      expect([door, status]).toEqual([door, 200]);
      expect(received()).toContain(TEA);
      expect(source.queries.at(-1)?.scope.userId).toBe("caroline");
      expect(engine.requests.at(-1)?.url).toMatch(/^\/v1\//);
      expect(JSON.stringify(engine.requests.at(-1)?.headers) + received()).not.toContain("caroline");
    }
    expect(app.log.map(({ route }) => route)).toEqual(DOORS.map(([door]) => `/v1/${door}`));
  });

  it.each([
    ["a%20b", "a b"],
    ["a%2Fb", "a/b"],
    ["%E2%82%AC", "€"],
    ["caroline@example.org", "caroline@example.org"],
    ["a%252Fb", "a%2Fb"],
    ["v1", "v1"],
    ["plain", "plain"],
    ["a+b", "a+b"],
  ])("has names percent-encoded: %s is %s", async (escaped, name) => {
    const [[door, body]] = DOORS;
    expect((await app.send("POST", `/users/${escaped}/v1/${door}`, body)).status).toBe(200);
    expect(source.queries.at(-1)?.scope.userId).toBe(name);
  });

  it("may name an agent and a conversation, whose prompts continue each other", async () => {
    const base = "/users/caroline/agents/planner/conversations/my%20trip/v1";
    const send = async (messages: readonly object[]) => {
      const answer = await app.send("POST", `${base}/chat/completions`, { model: "m", messages });
      return (JSON.parse(answer.text) as { choices: { message: object }[] }).choices[0]?.message ?? {};
    };
    const answer = await send(QUESTION);
    const first = engine.requests.at(-1)?.body.messages ?? [];
    source.found = ["Ada lives in Paris"];
    await send([...QUESTION, answer, { role: "user", content: "And where?" }]);
    expect(engine.requests.at(-1)?.body.messages.slice(0, first.length)).toEqual(first);
    expect(source.queries.at(-1)?.scope).toMatchObject({ userId: "caroline", agentId: "planner" });
    source.found = [TEA];
    const shown = JSON.parse((await app.send("GET", "/users/caroline/export")).text) as object;
    expect(JSON.stringify(shown)).toContain("my trip");
  });

  it.each([
    ["users//v1", "user_id"],
    [`users/${"x".repeat(600)}/v1`, "user_id"],
    ["users/a%00b/v1", "user_id"],
    ["users/a/conversations//v1", "conversation_id"],
    ["users/a/agents/%0A/v1", "agent_id"],
  ])("that has what cannot be a name is refused, with the field's name: %s", async (base, field) => {
    for (const [method, path, body] of [
      ...DOORS.map(([door, of]) => ["POST", door, of] as const),
      ["GET", "models", undefined] as const,
      ["POST", "messages/count_tokens", {}] as const,
      ["POST", "embeddings", {}] as const,
    ]) {
      const answer = await app.send(method, `/${base}/${path}`, body);
      expect([path, answer.status]).toEqual([path, 422]);
      expect(JSON.parse(answer.text)).toMatchObject({ errors: [{ field }] });
    }
    expect(engine.requests).toEqual([]);
  });

  it("does not agree with another name elsewhere: the request is refused, and says where", async () => {
    const [[chat, asked], [responses, input], [messages, message]] = DOORS;
    for (const [path, body, field] of [
      [chat, { ...asked, user: "bob" }, "user"],
      [chat, { ...asked, memprefix: { user_id: "bob" } }, "memprefix.user_id"],
      [responses, { ...input, user: "bob" }, "user"],
      [responses, { ...input, memprefix: { user_id: "bob" } }, "memprefix.user_id"],
      [messages, { ...message, metadata: { user_id: "bob" } }, "metadata.user_id"],
      [messages, { ...message, memprefix: { user_id: "bob" } }, "memprefix.user_id"],
      [chat, { ...asked, memprefix: { conversation_id: "other" } }, "memprefix.conversation_id"],
    ] as const) {
      const answer = await app.send("POST", `/users/ada/conversations/trip/v1/${path}`, body);
      expect([field, answer.status]).toEqual([field, 422]);
      expect(JSON.parse(answer.text)).toMatchObject({ errors: [{ field, message: "differs from the path" }] });
    }
    const bob = { "x-memprefix-user": "bob" };
    const refused = await sendWith(app, bob, "POST", "/users/ada/v1/chat/completions", asked);
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      422,
      { errors: [{ field: "x-memprefix-user" }] },
    ]);
    expect(engine.requests).toEqual([]);
    for (const same of [
      { ...asked, user: "ada", memprefix: { user_id: "ada" } },
      { ...asked, user: "" },
    ])
      expect((await app.send("POST", "/users/ada/v1/chat/completions", same)).status).toBe(200);
    // What coding agents say about themselves there names nobody.
    const agent = { ...message, metadata: { user_id: '{"account_uuid":"u-1","session_id":"s-1"}' } };
    expect((await app.send("POST", "/users/ada/v1/messages", agent)).status).toBe(200);
  });

  it("may end with a slash, which clients put another behind", async () => {
    for (const base of ["/users/ada/v1/", "/users/ada/conversations/c/v1//", "/plain/v1/"])
      for (const [path, body] of [...DOORS, ["embeddings", { model: "m", input: "a" }]] as const) {
        const { status } = await app.send("POST", `${base}/${path}`, body);
        expect([base, path, status, engine.requests.at(-1)?.url]).toEqual([
          base,
          path,
          200,
          expect.stringMatching(/^\/v1\/\w/),
        ]);
      }
    expect((await app.send("POST", "/users/ada/v1/chat//completions", {})).status).toBe(404);
  });

  it("has the other paths of the API below it, models and what the engine alone has", async () => {
    expect((await app.send("GET", "/users/ada/v1/models?limit=3")).status).toBe(200);
    expect(engine.requests.at(-1)?.url).toBe("/v1/models?limit=3");
    await app.send("GET", "/users/ada/conversations/c/v1/responses/resp_1");
    expect([engine.requests.at(-1)?.method, engine.requests.at(-1)?.url]).toEqual(["GET", "/v1/responses/resp_1"]);
    await app.send("DELETE", "/plain/v1/responses/resp_1");
    expect([engine.requests.at(-1)?.method, engine.requests.at(-1)?.url]).toEqual(["DELETE", "/v1/responses/resp_1"]);
    await app.send("POST", "/users/ada/v1/embeddings", { model: "m", input: "a" });
    expect(engine.requests.at(-1)?.url).toBe("/v1/embeddings");
    const taken = await app.send("GET", "/users/ada/v1/chat/completions");
    expect(taken.status).toBe(405);
    const { text } = await app.send("POST", "/users/ada/chat/completions", {});
    expect(text).toContain("use /users/ada/v1/chat/completions");
  });

  it("is no other route: what a user is called changes nothing of the users' own paths", async () => {
    expect((await app.send("GET", "/users/ada/export")).status).toBe(200);
    for (const path of [
      "/users/v1/chat/completions",
      "/users/a/b/v1/models",
      "/plain/users/a/v1/models",
      "/plain/models",
    ])
      expect([path, (await app.send("GET", path)).status]).toEqual([path, 404]);
  });
});

describe("a base URL that never composes", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: {
      MEMPREFIX_SOURCE: "rest",
      MEMPREFIX_MEM0_URL: "http://127.0.0.1:9",
      MEMPREFIX_WRITE_BACK: "on",
      MEMPREFIX_ENGINE_FAMILY: "openai",
    },
  });
  const isUntouched = async () => {
    expect(source.queries).toEqual([]);
    expect(source.added).toEqual([]);
    expect(JSON.parse((await app.send("GET", "/usage/requests")).text)).toMatchObject({ requests: [] });
  };

  it("passes each of the three doors on as it came, and needs no user", async () => {
    for (const [door, body] of DOORS) {
      const { status, headers } = await sendWith(app, {}, "POST", `/plain/v1/${door}`, body);
      expect([door, status, headers.get("x-memprefix-not-composed")]).toEqual([door, 200, "bypass"]);
      expect(headers.get("x-memprefix-warnings")).toBeNull();
      expect(engine.requests.at(-1)?.raw).not.toContain(TEA);
    }
    const [chat] = engine.requests;
    // The tenant's cache key is all that is added.
    const key = expect.any(String) as string;
    expect(JSON.parse(chat?.raw ?? "")).toEqual({ ...DOORS[0][1], prompt_cache_key: key });
    await isUntouched();
  });

  it("takes a user's name where there is one, and no wish for memories", async () => {
    const [[door, body]] = DOORS;
    expect((await app.send("POST", `/plain/v1/${door}`, { ...body, user: "ada" })).status).toBe(200);
    expect(engine.requests.at(-1)?.raw).toContain("prompt_cache_key");
    for (const named of ["", " ", null, "n".repeat(600), `{"session":"${"s".repeat(600)}"}`]) {
      for (const [path, of] of DOORS) {
        const user = path === "messages" ? { metadata: { user_id: named } } : { user: named };
        expect([path, named, (await app.send("POST", `/plain/v1/${path}`, { ...of, ...user })).status]).toEqual([
          path,
          named,
          200,
        ]);
      }
    }
    const wished = await app.send("POST", `/plain/v1/${door}`, { ...body, memprefix: { bypass: false } });
    expect([wished.status, JSON.parse(wished.text)]).toMatchObject([422, { errors: [{ field: "memprefix.bypass" }] }]);
    await isUntouched();
  });
});

describe("base URLs where API keys are in use", () => {
  const key = "k".repeat(40);
  const engine = openAiEngine();
  const app = servedApp({
    source: () => answeringSource([TEA]),
    upstream: engine,
    environment: { MEMPREFIX_API_KEY: key },
  });

  it("need one, which does not go on to the engine, and reach nobody else's tenant", async () => {
    for (const base of ["/users/ada", "/users/ada/conversations/c", "/plain"]) {
      for (const [path, body] of [...DOORS, ["models", undefined]] as const) {
        const send = (headers: Record<string, string>) =>
          sendWith(app, headers, body === undefined ? "GET" : "POST", `${base}/v1/${path}`, body);
        const answers = [
          (await send({})).status,
          (await send({ authorization: "Bearer wrong" })).status,
          (await send({ authorization: `Bearer ${key}` })).status,
        ];
        expect([base, path, answers]).toEqual([base, path, [401, 401, 200]]);
        expect(JSON.stringify(engine.requests.at(-1)?.headers)).not.toContain(key);
      }
      // What the engine keeps is every tenant's.
      const headers = { authorization: `Bearer ${key}` };
      expect((await sendWith(app, headers, "GET", `${base}/v1/responses/resp_1`)).status).toBe(404);
    }
  });
});
