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

  /** A conversation whose client sends everything, each prompt within the limit and with or without each memory by name. */
  const growing = async (limit: number, settings: object = {}) => {
    const messages: { role: string; content: string }[] = [];
    const turns = [];
    for (let turn = 0; turn < 25; turn++) {
      messages.push({ role: "user", content: `Question ${turn}?` });
      const body = { user_id: "ada", conversation_id: JSON.stringify(settings), messages, memories: facts(turn) };
      const answer = await app.compose({ ...body, max_prompt_tokens: limit, ...settings });
      const { plan, blocks, warnings } = answer;
      expect(plan.total_tokens).toBeLessThanOrEqual(limit);
      const named = warnings.flatMap(({ code, memory_ids }) => (code === "memory_left_out" ? (memory_ids ?? []) : []));
      expect([...blocks.map(({ memory_id }) => memory_id), ...named].sort()).toEqual(
        facts(turn)
          .map(({ id }) => id)
          .sort(),
      );
      turns.push({ ...answer, named, sent: messages.length });
      messages.push({ role: "assistant", content: "Yes." });
    }
    return turns;
  };

  it("never has more in a conversation that grows, and names each memory that it leaves out", async () => {
    const turns = await growing(450, { history: "exact" });
    expect(turns.filter(({ plan }) => plan.fresh_start).length).toBeGreaterThan(1);
    expect(turns.flatMap(({ named }) => named).length).toBeGreaterThan(0);
  });

  it("leaves the oldest messages out before memories, where the history need not be exact", async () => {
    const turns = await growing(1_400);
    expect(turns.flatMap(({ named }) => named)).toEqual([]);
    const began = turns.filter(({ plan }) => plan.epoch?.began === "limit");
    expect(began.length).toBeGreaterThan(2);
    expect(began.length).toBeLessThan(turns.length / 2);
    for (const [at, { plan, messages, sent }] of turns.entries()) {
      const { began: reason, left_out_messages: leftOut = 0 } = plan.epoch ?? {};
      const isOwn = (message: { role: string; content?: unknown }) =>
        !String(message.content).startsWith("<memories>") || String(message.content).includes("Question");
      expect(messages.filter(isOwn).length).toBe(sent - leftOut);
      const before = turns[at - 1]?.messages ?? [];
      if (reason === null) expect(messages.slice(0, before.length)).toEqual(before);
    }
  });

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
