import { describe, expect, it } from "vitest";
import { OpenApiDocument } from "../contracts/openapi-document.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf, observedBy } from "./chat-client.js";
import { openAiEngine, openEvents, sendEvents, sendJson, streamedAnswer } from "./openai-engine.js";
import { storedExchanges, storedRows } from "./stored-rows.js";

const TEA = "Ada drinks green tea";
const PARIS = "Ada lives in Paris";
const SECTION = `<memories>\n- ${TEA}\n- ${PARIS}\n</memories>`;

async function chunksOf<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

describe("OpenAI's own client, with another base URL", () => {
  const engine = openAiEngine();
  const source = answeringSource([TEA, PARIS]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
  });

  it("gets the engine's answer to a prompt with the user's memories", async () => {
    engine.answers.push("Green tea.");
    const { data, response } = await clientOf(app).chat.completions.create(ask("Which tea?")).withResponse();
    expect(data.choices[0]?.message.content).toBe("Green tea.");
    expect(engine.requests[0]?.body.messages).toEqual([{ role: "user", content: `${SECTION}\n\nWhich tea?` }]);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-memprefix-request-id": expect.stringMatching(/^[\w-]{36}$/),
      "x-memprefix-expected-cached-tokens": "0",
      "x-memprefix-cached-tokens": "0",
      "x-request-id": "req_engine",
    });
    expect(response.headers.get("x-memprefix-warnings")).toBeNull();
    expect(app.log.at(-1)).toMatchObject({ route: "/v1/chat/completions", status: 200, expectedCachedTokens: 0 });
  });

  it("keeps its own headers: session, request id, key and organisation; memprefix's go no further", async () => {
    const headers = {
      "x-memprefix-user": "ada",
      "x-session-id": "s-1",
      "x-smg-routing-key": "k",
      "X-Dynamo-Session-ID": "d",
      "openai-organization": "org",
    };
    await clientOf(app, headers).chat.completions.create(ask("Which tea?"));
    await clientOf(app, { ...headers, "x-request-id": "mine" }).chat.completions.create(ask("Which tea?"));
    const [first, second] = engine.requests.map((request) => request.headers);
    expect(first).toMatchObject({
      "x-session-id": "s-1",
      "x-smg-routing-key": "k",
      "x-dynamo-session-id": "d",
      "openai-organization": "org",
      authorization: "Bearer sk-of-the-client",
      "x-request-id": expect.stringMatching(/^[\w-]{36}$/),
      host: new URL(engine.url).host,
    });
    expect(second).toMatchObject({ "x-request-id": "mine" });
    expect(Object.keys(first ?? {}).filter((name) => name.startsWith("x-memprefix"))).toEqual([]);
  });

  it("gets a stream as the engine sends it, chunk by chunk", async () => {
    let goOn: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    engine.behave(async (_request, response) => {
      const [opening, ...rest] = streamedAnswer("Green tea it is.", null);
      openEvents(response);
      response.write(`: a comment\n\ndata: ${JSON.stringify(opening)}\r\n\r\n`);
      response.write(`data: ${JSON.stringify(rest[0])}\n\n`);
      await held;
      for (const chunk of rest.slice(1)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      response.end("data: [DONE]\n\n");
    });
    const stream = await clientOf(app).chat.completions.create({ ...ask("Which tea?"), stream: true });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      if (text === "Green") goOn();
    }
    expect(text).toBe("Green tea it is.");
  });

  it.each([{ include_usage: true }, { include_usage: false }])(
    "gets the usage as it asked for it: %j",
    async (wanted) => {
      const stream = await clientOf(app).chat.completions.create({
        ...ask("Which tea?"),
        stream: true,
        stream_options: wanted,
      });
      const usages = [];
      for await (const { usage } of stream) if (usage) usages.push(usage);
      expect(usages).toHaveLength(wanted.include_usage ? 1 : 0);
      expect(engine.requests[0]?.body.stream_options).toEqual(wanted);
      expect(await observedBy(app)).toMatchObject(wanted.include_usage ? { cachedTokens: 0 } : {});
      expect((await observedBy(app))["ttftMs"]).toBeGreaterThan(0);
    },
  );

  it("waits for what others sent; of that only its own share is taken for what its prompt costs", async () => {
    const waiting: (() => void)[] = [];
    engine.behave(async (_request, response, usage) => {
      await new Promise<void>((served) => {
        waiting.push(served);
        // Both at once, some time after both are there.
        if (waiting.length === 2) setTimeout(() => waiting.map((one) => one()), 300);
      });
      sendEvents(response, streamedAnswer("Indeed.", usage));
    });
    const users = ["ada", "bob"];
    await Promise.all(
      users.map((user) =>
        app.send("POST", "/v1/chat/completions", { ...ask(`Which tea? ${"For me. ".repeat(50)}`), user, stream: true }),
      ),
    );
    const waits = () => storedExchanges(app.database).requests.map(({ observed }) => Number(observed?.["ttftMs"]));
    const taken = () =>
      (storedRows(app.database).get("prompts") ?? []).flatMap(({ sample_ms: ms }) => (ms === null ? [] : [Number(ms)]));
    // The first of the two may be no sample.
    await expect.poll(() => Math.min(...taken()) / Math.max(...waits())).toBeLessThan(0.75);
  });

  it("gets its stream of an engine that refuses to be asked for usage, which is asked only once", async () => {
    engine.behave((request, response) => {
      if (request.body.stream_options)
        return sendJson(response, 422, { detail: [{ loc: ["body", "stream_options"] }] });
      return sendEvents(response, streamedAnswer("Indeed.", null));
    });
    for (const question of ["One?", "Two?"]) {
      const stream = await clientOf(app).chat.completions.create({ ...ask(question), stream: true });
      expect((await chunksOf(stream)).length).toBeGreaterThan(1);
    }
    expect(engine.requests).toHaveLength(3);
  });

  it("gets what the OpenAPI document says", async () => {
    const document = await OpenApiDocument.of(app);
    const path = "/v1/chat/completions";
    const body = { ...ask("Which tea?"), user: "ada", memprefix: { top_k: 3, write_back: null } };
    expect(document.accepts("ChatRequest", body)).toBe(true);
    expect(document.accepts("ChatRequest", { ...body, memprefix: { top_p: 3 } })).toBe(false);
    document.expectDocumented("post", path, await app.send("POST", path, body));
    document.expectDocumented("post", path, await app.send("POST", path, ask("Whose?")));
  });
});
