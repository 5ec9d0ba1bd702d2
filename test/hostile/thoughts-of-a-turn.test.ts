/*
 * Attacked: agents whose model's chat template keeps thoughts only behind the newest user's message (Qwen3, GLM, DeepSeek, …).
 * Broke: memories in a user's message behind a tool's result were the newest question to it: the thoughts of the turn under way went, and the
 * prompt changed at the turn's first step, with every result that brought memories.
 * Held: what a client itself puts behind a result; templates that do not count users' messages keep memories in a message of their own.
 */
import { Template } from "@huggingface/jinja";
import { describe, expect, it, vi } from "vitest";
import type { ChatMessage } from "../../src/core/index.js";
import { CHAT_TEMPLATES } from "../engines/adapters/chat-templates.js";
import { sendWith } from "../http/guards/callers.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { MODELS, openAiEngine, sendJson } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { calls, result, says, user } from "../messages.js";
import { itemsOf, messagesBodyOf } from "./api-forms.js";

type Messages = readonly ChatMessage[];

const STEPS = 3;
const thought = (turn: number, step: number) => `Thought ${turn}.${step} of many.`;

/** What is said in a turn after its question: steps with thoughts, calls and results, then the answer. */
function stepsOf(turn: number): ChatMessage[] {
  const steps = Array.from({ length: STEPS }, (_, step): ChatMessage[] => {
    const id = `c${turn}${step}`;
    const more = { content: "", reasoning_content: thought(turn, step) };
    return [calls("look_up", `{"step":${step}}`, id, more), result(`Result ${turn}.${step}`, id)];
  });
  return steps.flat();
}
const LOOKED_UP = [user("Where?"), ...stepsOf(0).slice(0, 2)];

const engine = openAiEngine();
const source = answeringSource([]);

/** An agent's requests, one after each question and each result. */
function agentOf(app: { readonly base: string }) {
  const post = async (path: string, body: object, conversation: string): Promise<Messages> => {
    const whose = { "x-memprefix-user": "ada", "x-memprefix-conversation": conversation };
    const { status, text } = await sendWith(app, whose, "POST", path, body);
    expect(status, text).toBe(200);
    return engine.requests.at(-1)?.body.messages ?? [];
  };
  const chat = (model: string, messages: Messages, conversation = "c") =>
    post("/v1/chat/completions", { model, messages }, conversation);
  /** Two turns; the prompts of each. */
  const run = async (model: string): Promise<Messages[][]> => {
    const history: ChatMessage[] = [{ role: "system", content: "Be kind." }];
    const turns: Messages[][] = [];
    for (let turn = 0; turn < 2; turn++) {
      history.push(user(`Question ${turn}?`));
      const prompts: Messages[] = [];
      for (const [at, message] of [null, ...stepsOf(turn)].entries()) {
        if (message !== null) history.push(message);
        if (message?.role === "assistant") continue;
        source.found = [0, 1].map((n) => `Ada has thing ${turn}.${at}.${n}.`);
        prompts.push(await chat(model, history));
      }
      turns.push(prompts);
      history.push(says("Noted."));
    }
    return turns;
  };
  return { post, chat, run };
}

/** What the engine's template makes of a turn's prompts: whether each begins with the one before, and has the turn's thoughts so far. */
function expectKept(template: string, turns: readonly (readonly Messages[])[]): void {
  for (const [turn, prompts] of turns.entries()) {
    let before = "";
    for (const [step, messages] of prompts.entries()) {
      const rendered = new Template(template).render({ messages });
      expect(rendered.startsWith(before), `turn ${turn}, step ${step}: ${rendered}`).toBe(true);
      for (let at = 0; at < step; at++) expect(rendered).toContain(thought(turn, at));
      expect(rendered).toContain(`Ada has thing ${turn}.${step * 2}.0.`);
      before = rendered;
    }
  }
}

const isOwnMessage = (messages: Messages) => messages.at(-1)?.role === "user" && messages.at(-2)?.role === "tool";

describe("a model whose template keeps thoughts behind the newest user's message", () => {
  // A prompt that starts afresh does not begin with the one before.
  const environment = { MEMPREFIX_RETENTION: "keep" };
  const app = servedApp({ source: () => source, upstream: engine, environment });
  const { post, chat, run } = agentOf(app);
  /** Until the engine was asked what it serves, and said so: then memories have a message of their own behind a result, or not. */
  const untilKnown = (model: string, isOwn = false) =>
    vi.waitFor(async () => {
      source.found = ["Ada rows."];
      expect(isOwnMessage(await chat(model, LOOKED_UP, `other ${Math.random()}`))).toBe(isOwn);
    });

  it.each([
    ["Qwen/Qwen3-8B", "qwen3"],
    ["z-ai/glm-4.5-air", "glm"],
    ["deepseek-reasoner", "deepseek"],
  ] as const)("%s: keeps them, by its name", async (model, template) => {
    expectKept(CHAT_TEMPLATES[template].template, await run(model));
  });

  it("is told by what vLLM lists under the name that it is given", async () => {
    const listed = { ...MODELS.data[0], id: "agent", root: "Qwen/Qwen3-8B", parent: null, max_model_len: 32_768 };
    const adapter = { ...listed, id: "lora", root: "/adapters/mine", parent: "agent" };
    engine.list((_request, response) => sendJson(response, 200, { object: "list", data: [listed, adapter] }));
    for (const model of ["agent", "lora"]) await untilKnown(model);
    expectKept(CHAT_TEMPLATES.qwen3.template, await run("agent"));
  });

  const llamaCpp = (id: string, template: string, more: object = {}) =>
    engine.list(({ url }, response) => {
      if (url === "/props") return sendJson(response, 200, { chat_template: template, ...more, total_slots: 1 });
      return sendJson(response, 200, { object: "list", data: [{ ...MODELS.data[0], id, owned_by: "llamacpp" }] });
    });

  it("is told by the template for tools, where llama.cpp shows two", async () => {
    const { qwen3, kimi } = CHAT_TEMPLATES;
    llamaCpp("/models/mine.gguf", kimi.template, { chat_template_tool_use: qwen3.template });
    await chat("any", [user("Where?")], "first");
    await untilKnown("any");
    expectKept(qwen3.template, await run("any"));
  });

  it("is none where llama.cpp shows another template, whatever its name", async () => {
    llamaCpp("Qwen3-8B-Q4_K_M.gguf", CHAT_TEMPLATES.kimi.template);
    await untilKnown("Qwen3-8B", true);
    const turns = await run("Qwen3-8B");
    expect(turns.flatMap((prompts) => prompts.slice(1)).every(isOwnMessage)).toBe(true);
    expectKept(CHAT_TEMPLATES.kimi.template, turns);
  });

  it("is asked for nothing but its list where it is no llama.cpp", async () => {
    source.found = ["Ada rows."];
    await run("stub-1");
    expect(engine.limitRequests.map(({ url }) => url)).toEqual(["/v1/models"]);
    expect(isOwnMessage(engine.requests.at(-1)?.body.messages ?? [])).toBe(true);
  });

  it("has memories in the result by every API", async () => {
    const model = "Qwen/Qwen3-8B";
    const messages = LOOKED_UP;
    source.found = ["Ada rows."];
    const prompt = await chat(model, messages, "chat");
    expect(isOwnMessage(prompt)).toBe(false);
    expect(JSON.stringify(prompt.at(-1))).toContain("Ada rows.");
    engine.behave((_request, response) => sendJson(response, 200, {}));
    await post("/v1/messages", { ...messagesBodyOf(messages), model }, "messages");
    const last = (JSON.parse(engine.requests.at(-1)?.raw ?? "") as { messages: readonly object[] }).messages.at(-1);
    expect(last).toEqual({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "c00", content: expect.stringContaining("Ada rows.") }],
    });
    await post("/v1/responses", { model, input: itemsOf(messages), store: false }, "responses");
    const { input } = JSON.parse(engine.requests.at(-1)?.raw ?? "") as { input: readonly Record<string, unknown>[] };
    expect(input.at(-1)).toMatchObject({ type: "function_call_output", output: expect.stringContaining("Ada rows.") });
  });
});
