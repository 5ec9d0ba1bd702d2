import { beforeEach, describe, expect, it } from "vitest";
import { ownMessage } from "../../core/blocks/provider-texts.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";
import { clientOf } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";
import { openAiEngine } from "./openai-engine.js";
import { answersResponses, type ReceivedResponses } from "./responses-engine.js";

const TEA = "Ada drinks green tea";
const PARIS = "Ada lives in Paris";
const SECTION = `<memories>\n- ${TEA}\n- ${PARIS}\n</memories>`;
const MOVED = "provider_memories_moved";
const instructions = (texts: readonly string[]) => ({ role: "system" as const, content: ownMessage(texts) });

describe("memories that Mem0's AI SDK provider put into a prompt", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Found by memprefix"]);
  const app = servedApp({ source: () => source, upstream: engine });
  beforeEach(() => {
    source.queries.length = 0;
  });
  const inTrip = { "x-memprefix-user": "ada", "x-memprefix-conversation": "trip" };
  const chat = async (messages: object[], headers: object = {}, memprefix?: object) => {
    const client = clientOf(app, { ...inTrip, ...headers });
    const body = { model: "stub-1", messages: messages as never, ...(memprefix === undefined ? {} : { memprefix }) };
    const { data, response } = await client.chat.completions.create(body).withResponse();
    return { answer: data.choices[0]?.message, headers: response.headers };
  };
  const sent = () => engine.requests.map(({ raw }) => JSON.parse(raw) as { messages: object[] });

  it("are the memories of a chat, which begins as on the turn before; its answer and the log say so", async () => {
    const brief = { role: "system", content: "Be brief." };
    const first = [brief, { role: "user", content: "Which tea?" }];
    const { answer, headers } = await chat([instructions([TEA, PARIS]), ...first]);
    expect(headers.get("x-memprefix-warnings")).toBe(MOVED);
    expect(app.log.at(-1)).toMatchObject({ warnings: [MOVED] });
    await chat([instructions(["Ada sings", TEA]), ...first, answer ?? {}, { role: "user", content: "And now?" }]);
    const [one, two] = sent().map(({ messages }) => messages);
    expect(one).toEqual([brief, { role: "user", content: `${SECTION}\n\nWhich tea?` }]);
    expect(two?.slice(0, 2)).toEqual(one);
    expect(JSON.stringify(two).split(`- ${TEA}`)).toHaveLength(2);
    expect(JSON.stringify(two)).toContain("- Ada sings");
    expect(source.queries).toEqual([]);
  });

  it("join those that the request names", async () => {
    const memories = [
      { id: "m1", memory: PARIS },
      { id: "m2", memory: "Ada sings" },
    ];
    const question = { role: "user", content: "Which tea?" };
    await chat([instructions([TEA, PARIS]), question], {}, { memories });
    const [request] = sent();
    for (const text of [TEA, PARIS, "Ada sings"]) expect(JSON.stringify(request).split(text)).toHaveLength(2);
  });

  it.each<[string, object, object[], string]>([
    ["its client wants no memories", { "x-memprefix-bypass": "true" }, [], "bypass"],
    ["it cannot be composed", {}, [{ role: "assistant", content: "Green" }], "messages"],
  ])("stay where they were in a chat that is sent unmodified: %s", async (_why, headers, more, reason) => {
    const messages = [instructions([TEA]), { role: "user", content: "Which tea?" }, ...more];
    const { headers: answered } = await chat(messages, headers);
    expect(answered.get("x-memprefix-not-composed")).toBe(reason);
    expect(sent()[0]?.messages).toEqual(messages);
  });

  it("are taken out of responses, also of those continued by an id", async () => {
    engine.behave(answersResponses());
    const client = clientOf(app, { "x-memprefix-user": "ada" });
    const ask = async (texts: string[], question: string, previous: string | null) => {
      const input = [
        { role: "developer" as const, content: ownMessage(texts) },
        { role: "user" as const, content: question },
      ];
      const body = { model: "stub-1", instructions: "Be brief.", input, previous_response_id: previous };
      return client.responses.create(body).withResponse();
    };
    const { data, response } = await ask([TEA, PARIS], "Which tea?", null);
    expect(response.headers.get("x-memprefix-warnings")).toBe(MOVED);
    const { data: next } = await ask([TEA, "Ada sings"], "And now?", data.id);
    await ask(["Ada sings", "Ada skates"], "And then?", next.id);
    const received = engine.requests.map(({ raw }) => JSON.parse(raw) as ReceivedResponses & { instructions: string });
    expect(received.map((request) => request.instructions)).toEqual(Array(3).fill("Be brief."));
    expect(received[0]?.input).toEqual([{ role: "user", content: `${SECTION}\n\nWhich tea?` }]);
    expect(received.map(({ input }) => (input as unknown[]).length)).toEqual([1, 1, 1]);
    const all = JSON.stringify(received);
    for (const text of [TEA, PARIS, "Ada sings", "Ada skates"]) expect(all.split(`- ${text}`)).toHaveLength(2);
    expect(all).not.toContain("weightage");
    expect(app.faults).toEqual([]);
  });
});

describe("memories of Mem0's provider in Anthropic's instructions", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource([]),
    upstream: anthropic,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });
  const ask = (system: string | { type: "text"; text: string }[]) =>
    messagesClientOf(app).messages.create({
      model: "claude-opus-4-8",
      max_tokens: 50,
      system,
      messages: [{ role: "user", content: "Which tea?" }],
    });

  it("are taken out: what is left is the client's own, or no instructions at all", async () => {
    const block = { type: "text" as const, text: ownMessage([TEA]) };
    await ask([block, { type: "text", text: "Be brief." }]);
    await ask([block]);
    await ask(ownMessage([TEA]));
    const bodies = anthropic.calls.map(({ body }) => body);
    expect(bodies[0]?.["system"]).toMatchObject([{ type: "text", text: "Be brief." }]);
    for (const body of bodies.slice(1)) expect(body).not.toHaveProperty("system");
    for (const body of bodies) {
      expect(JSON.stringify(body).split(`- ${TEA}`)).toHaveLength(2);
      expect(body?.messages).toHaveLength(1);
    }
  });
});
