import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { createAgent, toolStrategy } from "langchain";
import { describe, expect, it } from "vitest";
import { memprefixMiddleware } from "../../../src/integrations/langchain.js";
import { TRIP } from "../../clients/agent-model.js";
import { brokenPrefixes, QUESTIONS, REQUESTS, wrongAnswers } from "../../clients/checked-prompts.js";
import { INSTRUCTIONS, USES, type Use } from "../../clients/client-program.js";
import { agentTrial, type Trial, trip, weather } from "./agent-trial.js";

const CHAT = "gpt-5-mini";
/** Newer models are asked by the Responses API. */
const RESPONSES = "gpt-5.2-pro";
const CONTEXT = { context: { userId: "ana", conversationId: "trip" } };

function agentOf({ memprefix, options, model }: Trial, name: string) {
  const middleware = [memprefixMiddleware({ memprefix, ...options })];
  return createAgent({ model: model(name), tools: [weather], systemPrompt: INSTRUCTIONS, middleware });
}

function planningAgent({ memprefix, options, model }: Trial, name: string) {
  const middleware = [memprefixMiddleware({ memprefix, ...options })];
  return createAgent({ model: model(name), systemPrompt: INSTRUCTIONS, middleware, responseFormat: trip });
}

/** Has a conversation turn by turn; gives its answers and the messages of the agent's state. */
async function converse(trial: Trial, name: string, use: Use) {
  let messages: BaseMessage[] = [];
  const answers: unknown[] = [];
  for (const question of QUESTIONS[use]) {
    const asked = { messages: [...messages, new HumanMessage(question)] };
    if (use === "stream") {
      const streamed: string[] = [];
      const stream = await agentOf(trial, name).stream(asked, { ...CONTEXT, streamMode: ["messages", "values"] });
      for await (const [mode, chunk] of stream) {
        if (mode === "messages") streamed.push(chunk[0].text);
        else messages = chunk.messages;
      }
      answers.push(streamed.join(""));
    } else if (use === "structured") {
      const state = await planningAgent(trial, name).invoke(asked, CONTEXT);
      messages = state.messages;
      answers.push(state.structuredResponse);
    } else {
      ({ messages } = await agentOf(trial, name).invoke(asked, CONTEXT));
      answers.push(messages.at(-1)?.text);
    }
  }
  return { answers, messages };
}

async function wrongWith(trial: Trial, model: string, use: Use): Promise<readonly unknown[]> {
  const { answers, messages } = await converse(trial, model, use);
  const { engine, errors } = trial;
  const paths = new Set(engine.served.map(({ path }) => path));
  return [
    ...errors,
    ...engine.refused,
    ...(paths.has(model === CHAT ? "chat/completions" : "responses") && paths.size === 1 ? [] : [...paths]),
    ...wrongAnswers(use, { answers }),
    ...(engine.served.length === REQUESTS[use] ? [] : [`${engine.served.length} requests`]),
    ...brokenPrefixes(engine.served),
    ...(await trial.recorded()),
    ...(JSON.stringify(messages).includes("<memories>") ? ["the agent's state has memories"] : []),
  ];
}

describe("an agent with the middleware: prompts begin with those before, usage is reported, its state has nothing of it", () => {
  const trial = agentTrial();

  it.each([CHAT, RESPONSES].flatMap((model) => USES.map((use) => [model, use] as const)))(
    "%s, %s",
    async (model, use) => {
      expect(await wrongWith(trial, model, use)).toEqual([]);
    },
  );
});

describe("an agent whose model's thoughts end with a user's message", () => {
  const trial = agentTrial();

  it("has memories inside tools' results", async () => {
    await converse(trial, "Qwen/Qwen3-8B", "tools");
    const results = trial.engine.served.flatMap(({ asked }) =>
      asked.prompt.filter((said) => /"role":"tool"/.test(said)),
    );
    expect(results.length).toBeGreaterThan(0);
    expect(results.every((said) => said.includes("<memories>"))).toBe(true);
    expect(brokenPrefixes(trial.engine.served)).toEqual([]);
  });
});

describe("an agent whose structured answer is the call of a tool", () => {
  const trial = agentTrial();

  it("is reported, too", async () => {
    const agent = createAgent({
      model: trial.model(CHAT),
      systemPrompt: INSTRUCTIONS,
      middleware: [memprefixMiddleware({ memprefix: trial.memprefix, ...trial.options })],
      responseFormat: toolStrategy(trip.meta({ title: "trip" })),
    });
    let messages: BaseMessage[] = [];
    for (const question of QUESTIONS.structured) {
      const state = await agent.invoke({ messages: [...messages, new HumanMessage(question)] }, CONTEXT);
      expect(state.structuredResponse).toEqual(TRIP);
      messages = state.messages;
    }
    expect([...trial.errors, ...trial.engine.refused]).toEqual([]);
    expect(brokenPrefixes(trial.engine.served)).toEqual([]);
    expect(await trial.recorded()).toEqual([]);
  });
});

describe("with memprefix as a service", () => {
  const trial = agentTrial("remote");

  it.each([
    [CHAT, "stream"],
    [RESPONSES, "steps"],
  ] as const)("%s, %s", async (model, use) => {
    expect(await wrongWith(trial, model, use)).toEqual([]);
  });
});
