import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";
import { openAiEngine } from "./openai-engine.js";
import { storedRows } from "./stored-rows.js";

type Message = OpenAI.ChatCompletionMessageParam;

const FACTS = Array.from({ length: 12 }, (_, n) => `Ada's fact number ${n} is about the houses on street ${n * 7}.`);

describe("a client that names nobody, where MEMPREFIX_DEFAULT_USER does", () => {
  const engine = openAiEngine();
  const source = answeringSource(FACTS.slice(0, 1));
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: { MEMPREFIX_DEFAULT_USER: "ada", MEMPREFIX_SEARCH_TIMEOUT_MS: "60000" },
  });
  const users = () => (storedRows(app.database).get("scopes") ?? []).map((row) => row["user_id"]);

  it("gets that user's memories, in a conversation", async () => {
    const client = clientOf(app, {});
    const { choices } = await client.chat.completions.create(ask("Where?"));
    const messages = [...ask("Where?").messages, choices[0]?.message as Message, ...ask("Which street?").messages];
    await client.chat.completions.create({ model: "stub-1", messages });
    expect(users()).toEqual(["ada"]);
    const [first, second] = engine.requests.map(({ body }) => body.messages);
    expect(second?.slice(0, 1)).toEqual(first);
    expect(JSON.stringify(second)).toContain(FACTS[0]);
  });

  it("is that user by each API, but where a user is named, or no memories are wanted", async () => {
    await clientOf(app, {})
      .responses.create({ model: "stub-1", input: "Where?" })
      .catch(() => {});
    await clientOf(app, { "x-memprefix-user": "bo" }).chat.completions.create(ask("Where?"));
    await clientOf(app, {}).chat.completions.create({ ...ask("Where?"), user: "cleo" });
    await clientOf(app, { "x-memprefix-bypass": "true" }).chat.completions.create(ask("Where?"));
    expect(users()).toEqual(["ada", "bo", "cleo"]);
    expect(engine.requests.at(-1)?.body.messages).toEqual(ask("Where?").messages);
  });
});

describe("a client that names its user and no conversation", () => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    upstream: engine,
    environment: { MEMPREFIX_SEARCH_TIMEOUT_MS: "60000" },
  });
  const prompts = () => engine.requests.map(({ body }) => body.messages);
  /** The conversation of each turn, in their order. */
  const conversations = () => (storedRows(app.database).get("turns") ?? []).map((row) => row["conversation_id"]);

  /** Asks a question at the end of a history, which it and the answer are added to. */
  async function say(history: Message[], question: string, headers: Record<string, string> = {}): Promise<void> {
    const client = clientOf(app, { "x-memprefix-user": "ada", ...headers });
    const turn = history.filter(({ role }) => role === "user").length;
    source.found = FACTS.slice(turn * 2, turn * 2 + 4);
    engine.answers.push(`Answer ${engine.requests.length}.`);
    history.push({ role: "user", content: question });
    const { choices } = await client.chat.completions.create({ model: "stub-1", messages: history });
    history.push(choices[0]?.message as Message);
  }

  it("has a conversation whose prompts begin with those before, from the first message on", async () => {
    const history: Message[] = [{ role: "system", content: "Be brief." }];
    for (const question of ["Where?", "Which street?", "How many?"]) await say(history, question);
    const sent = prompts();
    for (const [at, prompt] of sent.slice(1).entries()) expect(prompt.slice(0, sent[at]?.length)).toEqual(sent[at]);
    const last = (sent.at(-1) ?? []).flatMap(({ content }) => String(content).split("\n"));
    expect(FACTS.slice(0, 8).map((fact) => last.filter((line) => line === `- ${fact}`).length)).toEqual(
      Array(8).fill(1),
    );
    expect(new Set(conversations()).size).toBe(1);
    const layouts = (storedRows(app.database).get("prompts") ?? []).map((row) => row["layout"]);
    expect(layouts).toEqual(["single", "conversation", "conversation"]);
  });

  it("has as many conversations as it holds, whatever they share", async () => {
    const [first, second]: [Message[], Message[]] = [[], []];
    await say(first, "Where?");
    await say(first, "Which street?");
    await say(second, "Where?");
    // What the first conversation goes on with is known: the second one is the other.
    await say(second, "Since when?");
    await say(first, "How many?");
    await say(second, "And before?");
    const ids = conversations();
    expect(ids).toEqual([ids[0], ids[0], ids[2], ids[2], ids[0], ids[2]]);
    expect(ids[2]).not.toBe(ids[0]);
  });

  it("continues no other user's conversation, nor another agent's", async () => {
    const history: Message[] = [];
    await say(history, "Where?");
    await say([...history], "Which street?", { "x-memprefix-user": "bo" });
    await say([...history], "Which street?", { "x-memprefix-agent": "cook" });
    expect(new Set(conversations()).size).toBe(3);
    for (const prompt of prompts().slice(1)) expect(prompt[0]).toEqual({ role: "user", content: "Where?" });
  });

  it("has its conversation recognised by Anthropic's API, with cache marks that move", async () => {
    engine.behave(({ url }, response) => {
      const message = { type: "message", role: "assistant", content: [{ type: "text", text: "Lisbon." }] };
      const usage = { input_tokens: 9, output_tokens: 1 };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify(url?.includes("models") ? { data: [] } : { id: "msg_1", ...message, model: "m", usage }),
      );
    });
    const client = messagesClientOf(app);
    const mark = { cache_control: { type: "ephemeral" as const } };
    const text = (said: string, more: object = {}) => [{ type: "text" as const, text: said, ...more }];
    const first = { role: "user" as const, content: text("Where?", mark) };
    await client.messages.create({ model: "m", max_tokens: 9, messages: [first] });
    const messages = [
      { role: "user" as const, content: text("Where?") },
      { role: "assistant" as const, content: text("Lisbon.") },
      { role: "user" as const, content: text("Which street?", mark) },
    ];
    await client.messages.create({ model: "m", max_tokens: 9, messages });
    expect(new Set(conversations()).size).toBe(1);
  });
});
