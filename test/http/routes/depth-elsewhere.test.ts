import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { clientOf } from "./chat-client.js";
import { messagesClientOf } from "./messages-client.js";
import { likeliest, openAiEngine, sendJson, wholeAnswer } from "./openai-engine.js";

const SURE = [Math.log(0.98), Math.log(0.01), Math.log(0.009)];
const memories = Array.from({ length: 12 }, (_, at) => ({
  id: `m${at}`,
  memory: `Ada owns the book number ${at * 7}.`,
}));
const QUESTION = "Which books does Ada own?";
const booksIn = (text: string) => text.match(/Ada owns the book/g)?.length ?? 0;

describe("adaptive depth of requests that are no chats", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_ADAPTIVE_DEPTH: '{"firstBlocks":3}' } });
  /** An engine without `/responses` that is sure of its first token. */
  const isSure = () =>
    engine.behave(({ url, body }, response, usage) => {
      if (url === "/v1/responses") return sendJson(response, 404, { detail: "Not Found" });
      return sendJson(
        response,
        200,
        wholeAnswer("Indeed.", usage, {}, body.logprobs ? { logprobs: likeliest(SURE) } : {}),
      );
    });
  const chats = () => engine.requests.filter(({ url }) => url === "/v1/chat/completions");

  it("asks with a chat completion, whose prompt is the one that a message is converted to", async () => {
    isSure();
    const { response } = await messagesClientOf(app)
      .messages.create({
        model: "m",
        max_tokens: 500,
        system: "Be kind.",
        messages: [{ role: "user", content: QUESTION }],
        memprefix: { memories },
      } as never)
      .withResponse();
    const [probe, real] = chats();
    expect(probe?.body).toMatchObject({ max_tokens: 1, logprobs: true });
    expect(probe?.headers).toMatchObject({ authorization: "Bearer sk-ant-of-the-client" });
    expect(probe?.headers).not.toHaveProperty("anthropic-version");
    expect(real?.body.messages).toEqual(probe?.body.messages);
    expect(booksIn(real?.raw ?? "")).toBe(3);
    expect(response.headers.get("x-memprefix-depth")).toContain("given=3, retrieved=12, outcome=sure");
  });

  it("asks the same of a response, with what was said before", async () => {
    isSure();
    const client = clientOf(app);
    const asked = { model: "m", input: QUESTION, instructions: "Be kind.", memprefix: { memories } };
    const first = await client.responses.create(asked as never).withResponse();
    expect(first.response.headers.get("x-memprefix-depth")).toContain("outcome=sure");
    const { id } = first.data as unknown as { id: string };
    const { response } = await client.responses
      .create({ ...asked, input: "And which else?", previous_response_id: id } as never)
      .withResponse();
    expect(response.headers.get("x-memprefix-depth")).toContain("given=3, retrieved=9, outcome=sure");
    const [probe, real, next, last] = chats();
    expect(real?.body.messages).toEqual(probe?.body.messages);
    expect(last?.body.messages).toEqual(next?.body.messages);
    expect(last?.body.messages.slice(0, 2)).toEqual(real?.body.messages);
  });

  it("gives all memories where no chat says the request", async () => {
    isSure();
    const tools = [{ type: "web_search" }];
    const asked = clientOf(app).responses.create({
      model: "m",
      input: QUESTION,
      tools,
      memprefix: { memories },
    } as never);
    await asked.catch(() => {});
    expect(chats()).toHaveLength(0);
    expect(booksIn(engine.requests[0]?.raw ?? "")).toBe(12);
  });
});
