import type OpenAI from "openai";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";
import { storedExchanges } from "./stored-rows.js";

type Message = OpenAI.ChatCompletionMessageParam;

/** Facts of several tokens each; searches find a dozen that overlap from turn to turn. */
const FACTS = Array.from(
  { length: 40 },
  (_, n) => `Ada's fact number ${n} is about the ${n + 3} houses on street ${n * 7}.`,
);
const QUESTIONS = ["Where does she live?", "Which street was it?", "How many houses?", "And before that?", "Why?"];

/** What the engine reported of each request, in order, beside what was expected. */
function reports(database: string) {
  return storedExchanges(database).requests.map(({ observed, answer }) => {
    const { expectedCachedTokens: expected, totalTokens: total } = answer.plan;
    return { expected, total, ...(observed as { cachedTokens: number; promptTokens: number; ttftMs: number } | null) };
  });
}

describe.each([true, false])("a conversation through the proxy, streamed: %s", (stream) => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
  });

  it("only grows, and what is expected to be cached is what the engine finds", async () => {
    const client = clientOf(app, { "x-memprefix-user": "ada", "x-memprefix-conversation": "c-1" });
    const history: Message[] = [{ role: "system", content: "You know Ada well, and say so in few words." }];
    for (const [turn, question] of QUESTIONS.entries()) {
      source.found = FACTS.slice(turn * 4, turn * 4 + 12).reverse();
      engine.answers.push(`Answer number ${turn}.`);
      history.push({ role: "user", content: question });
      const asked = { model: "stub-1", messages: history };
      let answer = "";
      if (stream) {
        for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
          answer += chunk.choices[0]?.delta.content ?? "";
      } else {
        answer = (await client.chat.completions.create(asked)).choices[0]?.message.content ?? "";
      }
      expect(answer).toBe(`Answer number ${turn}.`);
      history.push({ role: "assistant", content: answer });
    }
    const prompts = engine.requests.map(({ body }) => body.messages);
    for (const [turn, prompt] of prompts.slice(1).entries()) {
      const before = prompts[turn] ?? [];
      expect(prompt.slice(0, before.length)).toEqual(before);
      expect(prompt[before.length]).toEqual({ role: "assistant", content: `Answer number ${turn}.` });
    }
    expect(source.queries.map(({ query }) => query)).toEqual(QUESTIONS);
    const seen = await vi.waitFor(() => {
      const stored = reports(app.database);
      expect(stored.every(({ cachedTokens }) => cachedTokens !== undefined)).toBe(true);
      return stored;
    });
    expect(seen).toHaveLength(QUESTIONS.length);
    expect(seen[0]).toMatchObject({ expected: 0, cachedTokens: 0 });
    for (const { expected, cachedTokens = 0, promptTokens = 0, ttftMs } of seen.slice(1)) {
      expect(cachedTokens).toBeGreaterThan(promptTokens / 3);
      // The engine's template opens the answer in every prompt, which no plan counts.
      expect(Math.abs(expected - cachedTokens)).toBeLessThanOrEqual(4);
      if (stream) expect(ttftMs).toBeGreaterThan(0);
      else expect(ttftMs).toBeUndefined();
    }
    expect(app.faults).toEqual([]);
  });
});

describe("who is asking", () => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    environment: {
      get MEMPREFIX_UPSTREAM_URL() {
        return `${engine.url}/`;
      },
      MEMPREFIX_UPSTREAM_API_KEY: "sk-of-the-engine",
    },
  });

  beforeEach(() => {
    source.queries.length = 0;
  });

  it.each([
    [{ "x-memprefix-user": "header" }, { user: "fallback" }, "header", null],
    [{}, { memprefix: { user_id: "body", agent_id: "planner" }, user: "fallback" }, "body", "planner"],
    [{ "x-memprefix-user": "both" }, { memprefix: { user_id: "both" } }, "both", null],
    [{}, { user: "fallback" }, "fallback", null],
    [{}, { user: "fallback", memprefix: null }, "fallback", null],
  ])("is named by %j and %j", async (headers, more, userId, agentId) => {
    const body = { messages: [{ role: "user", content: "Who am I?" }], ...more };
    const named = { authorization: "Bearer mine", ...headers };
    const { status } = await sendWith(app, named, "POST", "/v1/chat/completions?api-version=7", body);
    expect(status).toBe(200);
    expect(source.queries.at(-1)).toMatchObject({ scope: { userId, agentId }, query: "Who am I?" });
    expect(engine.requests[0]).toMatchObject({
      url: "/v1/chat/completions?api-version=7",
      headers: { authorization: "Bearer sk-of-the-engine" },
    });
  });

  it("may say what /compose can be told", async () => {
    const memories = [
      { id: "a", memory: "Ada rows" },
      { id: "b", memory: "Ada sings" },
    ];
    const memprefix = { user_id: "ada", request_id: "mine", memories, annotations: false, conversation_id: "c" };
    const ask = () =>
      app.send("POST", "/v1/chat/completions", { messages: [{ role: "user", content: "Which?" }], memprefix });
    await ask();
    await ask();
    expect(source.queries).toHaveLength(0);
    const content = "<memories>\n- Ada rows\n- Ada sings\n</memories>\n\nWhich?";
    for (const { body, headers } of engine.requests) {
      expect(body.messages).toEqual([{ role: "user", content }]);
      expect(headers["x-request-id"]).toBe("mine");
    }
    expect(reports(app.database)).toHaveLength(1);
  });
});
