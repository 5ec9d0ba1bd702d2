import { describe, expect, it } from "vitest";
import { problemOf, servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { ask, clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";

const facts = (turn: number) =>
  Array.from({ length: 10 }, (_, n) => ({
    id: `m-${turn}-${n}`,
    memory: `Ada's fact ${turn}.${n}: house ${turn * 31 + n}.`,
  }));

describe("a prompt bounded by max_prompt_tokens", () => {
  const app = servedApp();

  it("is a problem where the messages alone come to more; nothing is stored, and the id is free", async () => {
    const messages = [{ role: "user", content: "word ".repeat(500) }];
    const body = { user_id: "ada", request_id: "r", messages, memories: facts(0), max_prompt_tokens: 100 };
    const refused = await app.send("POST", "/compose", body);
    expect(refused.status).toBe(422);
    expect(problemOf(refused).errors).toEqual([
      {
        field: "messages",
        message: expect.stringMatching(/^come to 50\d tokens without any memory, more than .* 100$/),
      },
    ]);
    const answer = await app.compose({ ...body, max_prompt_tokens: 1_000 });
    expect(answer).toMatchObject({ request_id: "r", warnings: [] });
    expect(answer.blocks).toHaveLength(10);
  });
});

describe("MEMPREFIX_MAX_PROMPT_TOKENS", () => {
  const engine = openAiEngine();
  const source = answeringSource(["Ada drinks tea.", "Ada lives in Paris."]);
  const app = servedApp({ source: () => source, upstream: engine, environment: { MEMPREFIX_MAX_PROMPT_TOKENS: "60" } });

  it("bounds what does not say one, and a request may say another", async () => {
    const memories = facts(0);
    const body = { user_id: "ada", query: "Tea?", memories };
    expect((await app.compose(body)).plan.total_tokens).toBeLessThanOrEqual(60);
    expect((await app.compose({ ...body, max_prompt_tokens: 1_000 })).blocks).toHaveLength(10);
  });

  it("sends a chat unmodified whose messages alone come to more", async () => {
    const chat = async (content: string) => {
      const { response } = await clientOf(app).chat.completions.create(ask(content)).withResponse();
      return response.headers.get("x-memprefix-not-composed");
    };
    const long = "word ".repeat(500);
    expect(await chat(long)).toBe("context_length");
    expect(engine.requests.at(-1)?.body.messages).toEqual([{ role: "user", content: long }]);
    expect(await chat("Tea?")).toBeNull();
    expect(JSON.stringify(engine.requests.at(-1)?.body.messages)).toContain("Ada drinks tea.");
  });
});
