import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import { type Conversing, INSTRUCTIONS, runProgram, type Session, weatherIn } from "../client-program.js";

const trip = z.object({ city: z.string(), days: z.number() });
const weather = createTool({
  id: "weather",
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => weatherIn(city),
});
const agentOf = ({ base, headers }: Session, tools = {}) =>
  new Agent({
    id: "planner",
    name: "Planner",
    instructions: INSTRUCTIONS,
    model: { id: "memprefix/any", url: `${base}/v1`, apiKey: "the engine's", headers: { ...headers } },
    tools,
  });

const talk =
  (answer: (agent: Agent, messages: unknown[]) => Promise<unknown>, tools = {}): Conversing =>
  (session) => {
    const agent = agentOf(session, tools);
    const messages: unknown[] = [];
    return async (content) => {
      messages.push({ role: "user", content });
      return answer(agent, messages);
    };
  };

// Of `response.messages`, Mastra joins the calls of a turn's steps to its first; `uiMessages` keep the steps.
const withTools = talk(
  async (agent, messages) => {
    const result = await agent.generate(messages as Parameters<typeof agent.generate>[0], { maxSteps: 5 });
    messages.push(...(result.response.uiMessages ?? []));
    return result.text;
  },
  { weather },
);

runProgram({
  client: "Mastra",
  packages: ["@mastra/core"],
  api: "chat completions",
  identity: "`model.headers`",
  uses: {
    json: withTools,
    stream: talk(async (agent, messages) => {
      const result = await agent.stream(messages as Parameters<typeof agent.stream>[0]);
      let text = "";
      for await (const piece of result.textStream) text += piece;
      messages.push(...((await result.response).uiMessages ?? []));
      return text;
    }),
    tools: withTools,
    steps: withTools,
    structured: talk(async (agent, messages) => {
      const structuredOutput = { schema: trip };
      const result = await agent.generate(messages as Parameters<typeof agent.generate>[0], { structuredOutput });
      messages.push(...(result.response.uiMessages ?? []));
      return result.object;
    }),
  },
});
