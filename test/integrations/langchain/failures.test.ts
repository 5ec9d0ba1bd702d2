import { AIMessage, type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  dynamicSystemPromptMiddleware,
  modelFallbackMiddleware,
  modelRetryMiddleware,
  todoListMiddleware,
} from "langchain";
import { describe, expect, it } from "vitest";
import type { Composing } from "../../../src/integrations/composing.js";
import { type LangChainOptions, type ModelCall, memprefixMiddleware } from "../../../src/integrations/langchain.js";
import { answerTo } from "../../clients/agent-model.js";
import { brokenPrefixes } from "../../clients/checked-prompts.js";
import { INSTRUCTIONS } from "../../clients/client-program.js";
import { agentTrial, weather } from "./agent-trial.js";

const QUESTION = "Where should we eat tonight?";
const CALL = { context: { userId: "ana" }, configurable: { thread_id: "trip" } };

/** What reaches the model, as the last of several middlewares sees it. */
function recording(
  requests: { readonly messages: readonly BaseMessage[]; readonly system: SystemMessage }[],
  failures = 0,
) {
  let left = failures;
  return createMiddleware({
    name: "recording",
    wrapModelCall: async (request, handler) => {
      requests.push({ messages: request.messages, system: request.systemMessage });
      if (left-- > 0) throw new Error("overloaded");
      return handler(request);
    },
  });
}

describe("an agent's call that fails", () => {
  const trial = agentTrial();
  const ask = async (middleware: readonly AgentMiddleware[], model = trial.model("gpt-5-mini")) => {
    const agent = createAgent({ model, tools: [weather], systemPrompt: INSTRUCTIONS, middleware: [...middleware] });
    const { messages } = await agent.invoke({ messages: [new HumanMessage(QUESTION)] }, CALL);
    return messages.at(-1)?.text;
  };
  const own = () => memprefixMiddleware({ memprefix: trial.memprefix, ...trial.options });

  it("is repeated with the same prompt, which is composed once", async () => {
    const requests: Parameters<typeof recording>[0] = [];
    const retrying = modelRetryMiddleware({ maxRetries: 3, initialDelayMs: 1 });
    expect(await ask([retrying, own(), recording(requests, 2)])).toBe(answerTo(QUESTION));
    expect(requests).toHaveLength(3);
    expect(requests[0]?.messages.at(-1)?.text).toContain("<memories>");
    expect(requests.every(({ messages }) => messages.at(-1) === requests[0]?.messages.at(-1))).toBe(true);
    expect(trial.searches).toBe(1);
    expect(await trial.recorded()).toEqual([]);
  });

  it("goes to another model with the same prompt", async () => {
    const configuration = { baseURL: "http://127.0.0.1:9/v1" };
    const failing = new ChatOpenAI({ model: "gpt-5-mini", apiKey: "nobody's", maxRetries: 0, configuration });
    const requests: Parameters<typeof recording>[0] = [];
    expect(await ask([modelFallbackMiddleware(trial.model("gpt-5-mini")), own(), recording(requests)], failing)).toBe(
      answerTo(QUESTION),
    );
    expect(requests.map(({ messages }) => messages)).toEqual([requests[0]?.messages, requests[0]?.messages]);
    expect(trial.searches).toBe(1);
    expect(trial.engine.served).toHaveLength(1);
  });

  it("is composed anew where it is another", async () => {
    const requests: Parameters<typeof recording>[0] = [];
    let attempts = 0;
    const shortening = createMiddleware({
      name: "shortening",
      wrapModelCall: (request, handler) =>
        handler({ ...request, messages: [new HumanMessage(`${QUESTION} ${attempts++}`)] }),
    });
    const retrying = modelRetryMiddleware({ maxRetries: 1, initialDelayMs: 1 });
    await ask([retrying, shortening, own(), recording(requests, 1)]);
    expect(requests.map(({ messages }) => messages.at(-1)?.text.endsWith(" 1"))).toEqual([false, true]);
  });
});

describe("where memprefix cannot compose", () => {
  const trial = agentTrial();
  const sent = async (options: Partial<LangChainOptions>, context: object = CALL.context) => {
    const agent = createAgent({
      model: trial.model("gpt-5-mini"),
      middleware: [memprefixMiddleware({ memprefix: trial.memprefix, ...trial.options, ...options })],
    });
    const { messages } = await agent.invoke({ messages: [new HumanMessage(QUESTION)] }, { context });
    expect(messages.at(-1)?.text).toBe(answerTo(QUESTION));
    return trial.engine.served.map(({ asked }) => asked.prompt);
  };
  const PLAIN = ["[]", JSON.stringify({ role: "user", content: QUESTION })];
  const failing = (fields: Partial<Composing>): Composing => ({
    compose: (options) => trial.memprefix.compose(options),
    feedback: (options) => trial.memprefix.feedback(options),
    ...fields,
  });

  it("a report that fails is heard of, and the answer is there", async () => {
    const feedback = () => Promise.reject(new Error("no service"));
    const [prompt] = await sent({ memprefix: failing({ feedback }) });
    expect(prompt?.at(-1)).toContain("<memories>");
    expect(trial.errors.map(String)).toEqual(["Error: no service"]);
  });

  it.each([{}, { userId: null }, { userId: { id: "ana" } }])("a context that names nobody: %j", async (context) => {
    expect(await sent({}, context)).toEqual([PLAIN]);
    expect(trial.errors).toEqual([]);
  });

  it("a number is a name, and functions name whom they like", async () => {
    const [first] = await sent({}, { userId: 7 });
    expect(first?.at(-1)).toContain("<memories>");
    const options = { userId: ({ runtime }: ModelCall) => String(runtime.context["account"]) };
    expect((await sent(options, { account: "a7" })).at(-1)?.at(-1)).toContain("<memories>");
  });
});

describe("with other middlewares", () => {
  const trial = agentTrial();

  it("composes what they made of the request, instructions included", async () => {
    const agent = createAgent({
      model: trial.model("gpt-5-mini"),
      tools: [weather],
      systemPrompt: INSTRUCTIONS,
      middleware: [
        todoListMiddleware(),
        dynamicSystemPromptMiddleware(() => "Answer as a guide."),
        memprefixMiddleware({ memprefix: trial.memprefix, ...trial.options }),
      ],
    });
    let messages: BaseMessage[] = [];
    for (const question of [QUESTION, "And tomorrow?"])
      ({ messages } = await agent.invoke({ messages: [...messages, new HumanMessage(question)] }, CALL));
    expect(trial.errors).toEqual([]);
    expect(brokenPrefixes(trial.engine.served)).toEqual([]);
    expect(trial.engine.served[0]?.asked.prompt[1]).toContain("Answer as a guide.");
    expect(await trial.recorded()).toEqual([]);
  });

  it("marks of an engine's cache are in the messages and in the instructions", async () => {
    const requests: Parameters<typeof recording>[0] = [];
    const compose = { engine: "anthropic" } as const;
    const agent = createAgent({
      model: trial.model("gpt-5-mini"),
      systemPrompt: new SystemMessage({ content: INSTRUCTIONS, id: "instructions" }),
      middleware: [memprefixMiddleware({ memprefix: trial.memprefix, ...trial.options, compose }), recording(requests)],
    });
    await agent.invoke(
      { messages: [new HumanMessage(QUESTION), new AIMessage("Out."), new HumanMessage("And?")] },
      CALL,
    );
    expect(trial.errors).toEqual([]);
    const [{ messages, system } = { messages: [], system: new SystemMessage("") }] = requests;
    expect(JSON.stringify(system.content)).toContain("cache_control");
    expect(system.text).toBe(INSTRUCTIONS);
    expect(SystemMessage.isInstance(system)).toBe(true);
    expect(JSON.stringify(messages.at(-1)?.content)).toContain("cache_control");
    expect(messages.map(({ type }) => type)).toEqual(["human", "ai", "human"]);
  });

  it("gives an engine its keys along, behind the agent's own settings", async () => {
    const requests: Readonly<Record<string, unknown>>[] = [];
    const agent = createAgent({
      model: trial.model("gpt-5-mini"),
      middleware: [
        createMiddleware({
          name: "settings",
          wrapModelCall: (request, handler) => handler({ ...request, modelSettings: { headers: { "x-own": "1" } } }),
        }),
        memprefixMiddleware({ memprefix: trial.memprefix, ...trial.options, compose: { engine: "openai" } }),
        createMiddleware({
          name: "seeing",
          wrapModelCall: (request, handler) => {
            requests.push(request.modelSettings ?? {});
            return handler(request);
          },
        }),
      ],
    });
    await agent.invoke({ messages: [new HumanMessage(QUESTION)] }, CALL);
    expect(requests).toEqual([expect.objectContaining({ promptCacheKey: expect.any(String) })]);
    const [{ headers } = { headers: {} }] = trial.engine.served;
    expect(headers).toMatchObject({ "x-own": "1", "x-request-id": expect.any(String) });
  });
});
